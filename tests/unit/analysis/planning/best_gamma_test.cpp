#include "analysis/planning/best_gamma.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/naive.hpp"

using namespace specdec;
using core::AcceptanceRate;
using planning::RateInterval;
using planning::SearchSpace;

namespace {

/// A kind of cost in both forms: the library's, and plain arithmetic for the naive formulas.
struct Case {
  std::string name;
  SearchSpace space;
  naive::Cost cost;
};

/// Piecewise linear through (1, 1), (4, 1), (5, 1.6), (9, 1.7): a step as of padded batches, so that the speedup has
/// two peaks.
double stepped_factor(std::int64_t n) {
  const auto x = static_cast<double>(n);
  if (n <= 4) return 1.0;
  if (n <= 5) return 1.0 + 0.6 * (x - 4);
  return 1.6 + 0.025 * (x - 5);
}

const std::vector<Case>& cases() {
  static const std::vector<core::VerificationCost::Point> stepped = {{4, 1.0}, {5, 1.6}, {9, 1.7}};
  static const std::vector<Case> all = {
      {"the paper's costs", {{0.05, 0, {}}}, [](auto gamma) { return 1 + 0.05 * static_cast<double>(gamma); }},
      {"a dear draft", {{0.3, 0, {}}}, [](auto gamma) { return 1 + 0.3 * static_cast<double>(gamma); }},
      {"factor and overhead",
       {{0.04, 0.1, core::VerificationCost::constant(1.2)}},
       [](auto gamma) { return 1.2 + 0.1 + 0.04 * static_cast<double>(gamma); }},
      {"a step in the cost of verification",
       {{0.03, 0, core::VerificationCost::table(stepped)}},
       [](auto gamma) { return stepped_factor(gamma + 1) + 0.03 * static_cast<double>(gamma); }},
  };
  return all;
}

}  // namespace

TEST_CASE("the best gamma up to a bound is the best one of a scan") {
  for (const Case& c : cases()) {
    for (const double alpha : {0.1, 0.5, 0.8, 0.95}) {
      for (std::int64_t bound = 0; bound <= 20; ++bound) {
        INFO(c.name << ", alpha " << alpha << ", bound " << bound);
        SearchSpace space = c.space;
        space.max_gamma = bound;
        const theory::OptimalGamma best = planning::best_gamma(AcceptanceRate(alpha), space);
        CHECK(best.attained());
        CHECK(best.gamma == naive::best(alpha, bound, c.cost));
        CHECK(best.speedup == Approx(naive::speedup(alpha, best.gamma, c.cost)).epsilon(1e-13));
      }
    }
  }
}

// The midpoint of the rejections is exact; that of the alphas would be 1 - 1.4999e-13 or 1.
TEST_CASE("the middle of an interval keeps the digits of rates close to 1") {
  const RateInterval rates = {AcceptanceRate::from_rejection(2e-13), AcceptanceRate::from_rejection(1e-13)};
  CHECK(planning::middle(rates).rejection() == Approx(1.5e-13).epsilon(1e-15));
  CHECK(planning::middle({AcceptanceRate(0.1), AcceptanceRate(0.2)}).alpha() == Approx(0.15).epsilon(1e-15));
}

TEST_CASE("a negative bound on gamma is refused") {
  CHECK_THROWS_WITH(planning::best_gamma(AcceptanceRate(0.5), {{}, -1}),
                    "best_gamma: max_gamma is -1, but must be in [0, 9007199254740992]");
}
