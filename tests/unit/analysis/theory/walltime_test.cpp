#include "analysis/theory/walltime.hpp"

#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
using core::StepCost;
using core::VerificationCost;
using Points = std::vector<VerificationCost::Point>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the walltime improvement equals exact rational values, a slowdown among them") {
  CHECK(walltime_improvement(AcceptanceRate(0.8), 5, 0.05) == Approx(2.951424).epsilon(1e-15));
  CHECK(walltime_improvement(AcceptanceRate(0.9), 10, 0.1) == Approx(3.43094701955).epsilon(1e-15));
  CHECK(walltime_improvement(AcceptanceRate(0.35), 4, 0.2) == Approx(0.850211805556).epsilon(1e-12));
  CHECK(walltime_improvement(AcceptanceRate(1), 9, 0.1) == Approx(100.0 / 19).epsilon(1e-15));
}

TEST_CASE("without drafts nothing changes, whatever the costs") {
  const StepCost cost{.c = 3, .overhead = 2, .verification = VerificationCost::constant(7)};
  CHECK(walltime_improvement(AcceptanceRate(0.9), 0, cost) == 1);
}

TEST_CASE("disjoint supports pay for every draft") { CHECK(walltime_improvement(AcceptanceRate(0), 4, 0.25) == 0.5); }

TEST_CASE("verification and overhead enter the denominator") {
  const StepCost cost{.c = 0.5, .overhead = 0.25, .verification = VerificationCost::constant(1.5)};
  CHECK(walltime_improvement(AcceptanceRate(0.5), 1, cost) == Approx(1.5 / 2.25).epsilon(1e-15));
}

TEST_CASE("gains and losses of padded verification come out as enumerated") {
  // v(n) = 1 + .1 (2^ceil(log2 n) - 1), alpha = .8, c = 0; values from exact rational arithmetic, rounded to 4 places
  const StepCost cost{.verification =
                          VerificationCost::table(Points{{2, 1.1}, {3, 1.3}, {4, 1.3}, {5, 1.7}, {8, 1.7}, {9, 2.5}})};
  const std::vector<double> expected = {1, 1.6364, 1.8769, 2.2708, 1.9774, 2.1702, 2.3244, 2.4477, 1.7316};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(walltime_improvement(AcceptanceRate(0.8), static_cast<std::int64_t>(i), cost) ==
          Approx(expected[i]).margin(5e-5));
  }
}

TEST_CASE("some gamma helps exactly when alpha exceeds c, also within one unit in the last place") {
  CHECK(some_gamma_helps(AcceptanceRate(0.8), 0.79));
  CHECK_FALSE(some_gamma_helps(AcceptanceRate(0.8), 0.8));
  CHECK(some_gamma_helps(AcceptanceRate(0.3), std::nextafter(0.3, 0.0)));
  CHECK_FALSE(some_gamma_helps(AcceptanceRate(0.3), 0.3));
  CHECK_FALSE(some_gamma_helps(AcceptanceRate(1), 1));
  CHECK(some_gamma_helps(AcceptanceRate::from_rejection(1e-17), std::nextafter(1.0, 0.0)));
  CHECK_FALSE(some_gamma_helps(AcceptanceRate(0), 0));
}

TEST_CASE("gamma = 1 guarantees (1 + alpha) / (1 + c)") {
  CHECK(guaranteed_improvement(AcceptanceRate(0.8), 0.05) == Approx(1.8 / 1.05).epsilon(1e-15));
}

TEST_CASE("with the paper's costs the break-even rate is c, from the smallest to the largest") {
  for (const double c : {0.0, 5e-324, 1e-20, 0.05, 0.3, 0.5, 0.999}) {
    INFO("c " << c);
    const auto rate = break_even_alpha(StepCost{.c = c});
    REQUIRE(rate.has_value());
    CHECK(rate->alpha() == Approx(c).epsilon(1e-13));
  }
  CHECK_FALSE(break_even_alpha(StepCost{.c = 1}).has_value());
  CHECK_FALSE(break_even_alpha(StepCost{.c = 1e300}).has_value());
}

TEST_CASE("the break-even rate of one gamma makes its improvement 1") {
  const StepCost cost{.c = 0.1, .overhead = 0.2, .verification = VerificationCost::table(Points{{4, 1.3}})};
  for (const std::int64_t drafts : {1, 2, 3, 10, 100}) {
    const auto rate = break_even_alpha(drafts, cost);
    REQUIRE(rate.has_value());
    CHECK(walltime_improvement(*rate, drafts, cost) == Approx(1).epsilon(1e-13));
  }
}

TEST_CASE("a step that costs less than 1 breaks even at 0, one that costs more than all its tokens never") {
  CHECK(break_even_alpha(1, StepCost{.verification = VerificationCost::constant(0.5)})->alpha() == 0);
  CHECK_FALSE(break_even_alpha(3, StepCost{.verification = VerificationCost::constant(4.5)}).has_value());
  CHECK(break_even_alpha(3, StepCost{.verification = VerificationCost::constant(4)})->alpha() == 1);
}

TEST_CASE("the break-even rate of a general cost is the lowest one of all gammas") {
  const StepCost cost{.c = 0.02,
                      .overhead = 0.1,
                      .verification = VerificationCost::table(Points{{2, 1.6}, {4, 1.7}, {5, 2.4}, {8, 2.5}})};
  double lowest = 1;
  for (std::int64_t drafts = 1; drafts <= 500; ++drafts) {
    if (const auto rate = break_even_alpha(drafts, cost)) lowest = std::min(lowest, rate->alpha());
  }
  CHECK(break_even_alpha(cost)->alpha() == Approx(lowest).epsilon(1e-12));
}

TEST_CASE("illegal costs and gammas are refused by name") {
  CHECK_THROWS_AS(walltime_improvement(AcceptanceRate(0.5), 1, nan), std::domain_error);
  CHECK_THROWS_WITH(walltime_improvement(AcceptanceRate(0.5), -1, 0.1),
                    "walltime_improvement: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(some_gamma_helps(AcceptanceRate(0.5), nan),
                    "some_gamma_helps: c is nan, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_WITH(guaranteed_improvement(AcceptanceRate(0.5), -1),
                    "guaranteed_improvement: c is -1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_WITH(break_even_alpha(0, StepCost{}), "break_even_alpha: gamma is 0, but must be in [1, 2^63)");
  CHECK_THROWS_AS(break_even_alpha(StepCost{.overhead = -1}), std::domain_error);
}

}  // namespace specdec::theory
