#include "analysis/core/distribution.hpp"

#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "tests/support/catch.hpp"

namespace specdec::core {
namespace {

void check_refused(const std::vector<double>& row, const std::string& message) {
  CHECK_THROWS_AS(TargetDistribution(row), std::domain_error);
  CHECK_THROWS_WITH(TargetDistribution(row), "target distribution: " + message);
  CHECK_THROWS_WITH(DraftDistribution(row), "draft distribution: " + message);
}

}  // namespace

TEST_CASE("target and draft distributions cannot be swapped") {
  static_assert(!std::is_convertible_v<TargetDistribution, DraftDistribution>);
  static_assert(!std::is_convertible_v<DraftDistribution, TargetDistribution>);
  static_assert(std::is_invocable_v<decltype(overlap), TargetDistribution, DraftDistribution>);
  static_assert(!std::is_invocable_v<decltype(overlap), DraftDistribution, TargetDistribution>);
  static_assert(!std::is_invocable_v<decltype(overlap), std::vector<double>, std::vector<double>>);
  SUCCEED();
}

TEST_CASE("a distribution is a view of the row as it stands") {
  const std::vector<double> row = {0.5, 0.5000001};
  const TargetDistribution p(row);
  CHECK(p.probabilities().data() == row.data());
  CHECK(p.size() == 2);
  CHECK(p[1] == 0.5000001);
}

TEST_CASE("a negative, NaN or infinite probability is refused with its position and value") {
  check_refused({0.5, 0.6, -0.1}, "probability at position 2 is -0.1, but must be in [0, 1.00001]");
  check_refused({std::numeric_limits<double>::quiet_NaN(), 1},
                "probability at position 0 is nan, but must be in [0, 1.00001]");
  check_refused({0.5, std::numeric_limits<double>::infinity()},
                "probability at position 1 is inf, but must be in [0, 1.00001]");
}

TEST_CASE("a row that is not normalised is refused with its sum and the tolerance") {
  check_refused({0.6, 0.6}, "the 2 probabilities sum to 1.2, but must sum to 1 within 1e-05");
  check_refused({0, 0}, "the 2 probabilities sum to 0, but must sum to 1 within 1e-05");
}

TEST_CASE("an empty row is refused") {
  CHECK_THROWS_AS(TargetDistribution(std::vector<double>{}), std::invalid_argument);
  CHECK_THROWS_WITH(DraftDistribution(std::vector<double>{}), "draft distribution: the row is empty");
}

TEST_CASE("the tolerance of the stored format decides what is normalised") {
  const std::vector<double> half_precision = {0.5, 0.5015};
  CHECK_THROWS_AS(TargetDistribution(half_precision), std::domain_error);
  CHECK_NOTHROW(TargetDistribution(half_precision, 2e-3));
  const std::vector<double> brain_float = {0.5, 0.509};
  CHECK_THROWS_AS(TargetDistribution(brain_float, 2e-3), std::domain_error);
  CHECK_NOTHROW(TargetDistribution(brain_float, 1e-2));
  CHECK_THROWS_WITH(TargetDistribution(half_precision, -1),
                    "target distribution: tolerance is -1, but must be in [0, 1]");
}

TEST_CASE("rows of different lengths are refused by every kernel") {
  const std::vector<double> three = {0.5, 0.25, 0.25};
  const std::vector<double> two = {0.5, 0.5};
  const TargetDistribution p(three);
  const DraftDistribution q(two);
  CHECK_THROWS_AS(overlap(p, q), std::invalid_argument);
  CHECK_THROWS_WITH(overlap(p, q), "overlap: target distribution has 3 entries, but draft distribution has 2");
  CHECK_THROWS_WITH(d_lk(p, q), "d_lk: target distribution has 3 entries, but draft distribution has 2");
  CHECK_THROWS_AS(acceptance_rate(p, q), std::invalid_argument);
}

}  // namespace specdec::core
