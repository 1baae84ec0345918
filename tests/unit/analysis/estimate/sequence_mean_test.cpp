#include "analysis/estimate/sequence_mean.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/estimate/ratio_of_sums.hpp"
#include "tests/support/catch.hpp"

using specdec::estimate::Estimate;
using specdec::estimate::SequenceMean;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the mean of a column has the interval of a ratio of sums over its sequences") {
  const std::vector<std::int64_t> sequence = {0, 0, 1, 1, 1, 2};
  const std::vector<double> values = {1, 2, 4, 5, 6, 9};
  SequenceMean mean;
  mean.add({sequence}, values);
  const Estimate found = *mean.estimate();
  CHECK(found.value == Approx(27.0 / 6).epsilon(1e-14));
  const Estimate ratio = specdec::estimate::ratio_of_sums(std::vector<double>{3, 15, 9}, std::vector<double>{2, 3, 1});
  CHECK(found.ci95->lo == Approx(ratio.ci95->lo).epsilon(1e-12));
  CHECK(found.ci95->hi == Approx(ratio.ci95->hi).epsilon(1e-12));
}

TEST_CASE("sequences of one prompt are one cluster of the mean, and parts of a recording may be merged") {
  const std::vector<std::int64_t> sequence = {0, 0, 1, 1, 1, 2, 3};
  const std::vector<std::int64_t> prompt = {5, 5, 8, 8, 8, 5, 9};
  const std::vector<double> values = {1, 2, 4, 5, 6, 9, 3};
  SequenceMean mean;
  mean.add({sequence, {}, prompt}, values);
  const Estimate ratio = specdec::estimate::ratio_of_sums(std::vector<double>{12, 15, 3}, std::vector<double>{3, 3, 1});
  CHECK(mean.estimate()->ci95->lo == Approx(ratio.ci95->lo).epsilon(1e-12));
  SequenceMean first, second;
  const specdec::estimate::PositionLabels labels{sequence, {}, prompt};
  second.add(labels.part(0, 2), std::span(values).first(2));
  first.add(labels.part(2, 5), std::span(values).subspan(2));
  first.merge(second);
  CHECK(first.positions() == 7);
  CHECK(first.estimate()->value == mean.estimate()->value);
  CHECK(first.estimate()->ci95->hi == mean.estimate()->ci95->hi);
}

TEST_CASE("the mean does not depend on how a column is cut into batches") {
  const std::vector<std::int64_t> sequence = {0, 0, 1, 1, 1, 2};
  const std::vector<double> values = {1, 2, 4, 5, 6, 9};
  SequenceMean whole, pieces;
  whole.add({sequence}, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    pieces.add({std::span(sequence).subspan(i, 1)}, std::span(values).subspan(i, 1));
  CHECK(whole.estimate()->value == pieces.estimate()->value);
  CHECK(whole.estimate()->ci95->lo == pieces.estimate()->ci95->lo);
}

TEST_CASE("the mean leaves out what is not finite and is nothing without a value") {
  SequenceMean mean;
  mean.add({std::vector<std::int64_t>{0, 1}}, std::vector<double>{not_a_number, infinity});
  CHECK_FALSE(mean.estimate());
  mean.add({std::vector<std::int64_t>{1, 2}}, std::vector<double>{3, -infinity});
  CHECK(mean.positions() == 1);
  CHECK(mean.estimate()->value == 3);
  CHECK_FALSE(mean.estimate()->ci95);
}

TEST_CASE("one sequence gives an interval by batches") {
  std::vector<std::int64_t> sequence(400, 7);
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(i % 3);
  SequenceMean mean;
  mean.add({sequence}, values);
  const Estimate found = *mean.estimate();
  CHECK(found.ci95->lo < found.value);
  CHECK(found.method.find("one sequence") != std::string::npos);
}

TEST_CASE("a column and its sequences have one length") {
  SequenceMean mean;
  CHECK_THROWS_AS(mean.add({std::vector<std::int64_t>{0}}, std::vector<double>{1, 2}), std::invalid_argument);
}

TEST_CASE("the interval of a mean does not leave the range of its values") {
  const std::vector<std::int64_t> sequence = {0, 0, 1, 1, 2, 2};
  const std::vector<double> values = {0.2, 0.3, 0.95, 0.96, 0.99, 1};
  SequenceMean unbounded, share(specdec::estimate::Interval{0, 1}),
      divergence(specdec::estimate::Interval{0, infinity});
  for (SequenceMean* mean : {&unbounded, &share, &divergence}) mean->add({sequence}, values);
  const Estimate beyond = *unbounded.estimate();
  REQUIRE(beyond.ci95->lo < 0);
  REQUIRE(beyond.ci95->hi > 1);
  const Estimate within = *share.estimate();
  CHECK(within.value == beyond.value);
  // Wilson's interval with t: the ends solve |x - theta| = t sqrt(theta (1 - theta) / n), n = x (1 - x) / se^2.
  const double half_width = beyond.ci95->hi - beyond.value;
  const double x = within.value;
  const double squares_over_n = half_width * half_width / (x * (1 - x));
  for (const double theta : {within.ci95->lo, within.ci95->hi}) {
    CHECK(std::pow(x - theta, 2) == Approx(squares_over_n * theta * (1 - theta)).epsilon(1e-9));
    CHECK(0 < theta);
    CHECK(theta < 1);
  }
  CHECK(divergence.estimate()->ci95->lo == 0);
  CHECK(divergence.estimate()->ci95->hi == beyond.ci95->hi);
}
