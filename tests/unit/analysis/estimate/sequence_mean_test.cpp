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
  mean.add(sequence, values);
  const Estimate found = *mean.estimate();
  CHECK(found.value == Approx(27.0 / 6).epsilon(1e-14));
  // By hand: deviations of the sums from the mean times the lengths are -6, 1.5 and 4.5; t(2, .975)
  // = 4.302652729749464.
  const double error = std::sqrt(3.0 / 2 * (36 + 2.25 + 20.25)) / 6;
  CHECK(found.ci95->lo == Approx(4.5 - 4.302652729749464 * error).epsilon(1e-10));
  CHECK(found.ci95->hi == Approx(4.5 + 4.302652729749464 * error).epsilon(1e-10));
}

TEST_CASE("the mean does not depend on how a column is cut into batches") {
  const std::vector<std::int64_t> sequence = {0, 0, 1, 1, 1, 2};
  const std::vector<double> values = {1, 2, 4, 5, 6, 9};
  SequenceMean whole, pieces;
  whole.add(sequence, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    pieces.add(std::span(sequence).subspan(i, 1), std::span(values).subspan(i, 1));
  CHECK(whole.estimate()->value == pieces.estimate()->value);
  CHECK(whole.estimate()->ci95->lo == pieces.estimate()->ci95->lo);
}

TEST_CASE("the mean leaves out what is not finite and is nothing without a value") {
  SequenceMean mean;
  mean.add(std::vector<std::int64_t>{0, 1}, std::vector<double>{not_a_number, infinity});
  CHECK_FALSE(mean.estimate());
  mean.add(std::vector<std::int64_t>{1, 2}, std::vector<double>{3, -infinity});
  CHECK(mean.positions() == 1);
  CHECK(mean.estimate()->value == 3);
  CHECK_FALSE(mean.estimate()->ci95);
}

TEST_CASE("one sequence gives an interval by batches") {
  std::vector<std::int64_t> sequence(400, 7);
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(i % 3);
  SequenceMean mean;
  mean.add(sequence, values);
  const Estimate found = *mean.estimate();
  CHECK(found.ci95->lo < found.value);
  CHECK(found.method.find("one sequence") != std::string::npos);
}

TEST_CASE("a column and its sequences have one length") {
  SequenceMean mean;
  CHECK_THROWS_AS(mean.add(std::vector<std::int64_t>{0}, std::vector<double>{1, 2}), std::invalid_argument);
}
