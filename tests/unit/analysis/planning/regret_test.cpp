#include "analysis/planning/regret.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/theory/walltime.hpp"
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

/// Far beyond every optimum of the cases below.
constexpr std::int64_t naive_bound = 80;

RateInterval interval(double low, double high) { return {AcceptanceRate(low), AcceptanceRate(high)}; }

}  // namespace

TEST_CASE("regret is the share of the best speedup that is given away") {
  for (const Case& c : cases()) {
    INFO(c.name);
    for (const double alpha : {0.0, 0.2, 0.5, 0.75, 0.9}) {
      for (std::int64_t gamma = 0; gamma <= 12; ++gamma) {
        CHECK(planning::regret(AcceptanceRate(alpha), gamma, c.space) ==
              Approx(naive::regret(alpha, gamma, naive_bound, c.cost)).margin(1e-12));
      }
    }
  }
}

TEST_CASE("regret is 0 at the optimum and 1 where the speedup has no bound") {
  CHECK(planning::regret(AcceptanceRate(0.8), 8, {{0.05, 0, {}}}) == 0);
  CHECK(planning::regret(AcceptanceRate(1.0), 1000, {}) == 1);
}

TEST_CASE("the worst regret over an interval is the largest one on a fine grid of rates") {
  for (const Case& c : cases()) {
    for (const auto& [low, high] : {std::pair{0.7, 0.8}, {0.3, 0.9}, {0.0, 0.5}, {0.85, 0.86}}) {
      for (const std::int64_t gamma : {0, 1, 3, 4, 6, 11, 20}) {
        INFO(c.name << ", alpha " << low << " to " << high << ", gamma " << gamma);
        double worst = 0;
        for (int i = 0; i <= 200; ++i) {
          worst = std::max(worst, naive::regret(low + (high - low) * i / 200, gamma, naive_bound, c.cost));
        }
        CHECK(planning::worst_regret(interval(low, high), gamma, c.space) == Approx(worst).margin(1e-12));
      }
    }
  }
}

TEST_CASE("the minimax gamma has the least worst regret of all gammas") {
  for (const Case& c : cases()) {
    for (const auto& [low, high] : {std::pair{0.7, 0.8}, {0.3, 0.9}, {0.0, 0.5}, {0.85, 0.86}, {0.6, 0.6}}) {
      INFO(c.name << ", alpha " << low << " to " << high);
      std::int64_t best = 0;
      const auto worst = [&, low = low, high = high](std::int64_t gamma) {
        return std::max(naive::regret(low, gamma, naive_bound, c.cost),
                        naive::regret(high, gamma, naive_bound, c.cost));
      };
      for (std::int64_t gamma = 1; gamma <= naive_bound; ++gamma) {
        if (worst(gamma) < worst(best) - 1e-14) best = gamma;
      }
      const planning::MinimaxGamma minimax = planning::minimax_gamma(interval(low, high), c.space);
      CHECK(minimax.attained);
      CHECK(minimax.gamma == best);
      CHECK(minimax.worst_regret == Approx(worst(best)).margin(1e-12));
    }
  }
}

TEST_CASE("with a free draft no gamma is minimax, since every larger one does better") {
  CHECK_FALSE(planning::minimax_gamma(interval(0.7, 0.8), {}).attained);
  CHECK_FALSE(planning::minimax_gamma(interval(0.7, 1.0), {}).attained);
}

TEST_CASE("an interval up to alpha = 1 has a minimax gamma, though its high end has no optimum") {
  const SearchSpace space = {{0.1, 0, {}}};
  const planning::MinimaxGamma minimax = planning::minimax_gamma(interval(0.9, 1.0), space);
  CHECK(minimax.attained);
  const auto worst = [&](std::int64_t gamma) { return planning::worst_regret(interval(0.9, 1.0), gamma, space); };
  for (std::int64_t gamma = 0; gamma <= 200; ++gamma) CHECK(worst(gamma) >= minimax.worst_regret);
}

TEST_CASE("the gammas that are best somewhere in an interval are those of a fine grid, each with its rates") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const auto stretches = planning::best_stretches(interval(0.3, 0.9), c.space, 100);
    CHECK(stretches.front().low.alpha() == 0.3);
    CHECK(stretches.back().high.alpha() == 0.9);
    for (int i = 0; i <= 300; ++i) {
      const double alpha = 0.3 + 0.6 * i / 300;
      const auto here = std::find_if(stretches.begin(), stretches.end(),
                                     [&](const auto& s) { return s.low.alpha() <= alpha && alpha <= s.high.alpha(); });
      REQUIRE(here != stretches.end());
      CHECK(here->gamma == naive::best(alpha, naive_bound, c.cost));
    }
  }
}

TEST_CASE("where one best gamma hands over to the next, both are equally fast") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const auto stretches = planning::best_stretches(interval(0.3, 0.9), c.space, 100);
    for (std::size_t i = 0; i + 1 < stretches.size(); ++i) {
      const AcceptanceRate rate = stretches[i].high;
      const double before = theory::walltime_improvement(rate, stretches[i].gamma, c.space.cost);
      const double after = theory::walltime_improvement(rate, stretches[i + 1].gamma, c.space.cost);
      CHECK(std::abs(before / after - 1) <= 8 * 2.220446049250313e-16);
    }
  }
}

// The midpoint of the rejections is exact; that of the alphas would be 1 - 1.4999e-13 or 1.
TEST_CASE("the middle of an interval and its stretches keep the digits of rates close to 1") {
  const RateInterval rates = {AcceptanceRate::from_rejection(2e-13), AcceptanceRate::from_rejection(1e-13)};
  CHECK(planning::middle(rates).rejection() == Approx(1.5e-13).epsilon(1e-15));
  CHECK(planning::middle(interval(0.1, 0.2)).alpha() == Approx(0.15).epsilon(1e-15));
  const RateInterval closer = {AcceptanceRate::from_rejection(2e-17), AcceptanceRate::from_rejection(1e-17)};
  CHECK(planning::middle(closer).rejection() == Approx(1.5e-17).epsilon(1e-15));
  const auto stretches = planning::best_stretches(closer, {{0.05, 0, {}}}, 3);
  REQUIRE(stretches.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(stretches[i].low < stretches[i].high);
  const RateInterval reversed = {closer.high, closer.low};
  CHECK_THROWS_AS(planning::minimax_gamma(reversed, {}), std::domain_error);
}

TEST_CASE("stretches stop at the limit that is asked for") {
  const auto stretches = planning::best_stretches(interval(0.3, 0.9), {{0.05, 0, {}}}, 3);
  REQUIRE(stretches.size() == 3);
  CHECK(stretches.back().high.alpha() < 0.9);
}

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

TEST_CASE("near-best gammas up to a bound are those of a scan") {
  for (const Case& c : cases()) {
    for (const std::int64_t bound : {2, 5, 9, 60}) {
      SearchSpace space = c.space;
      space.max_gamma = bound;
      const double alpha = 0.82;
      const auto ranges = planning::near_best_gammas(AcceptanceRate(alpha), space, 0.03);
      for (std::int64_t gamma = 0; gamma <= bound; ++gamma) {
        INFO(c.name << ", bound " << bound << ", gamma " << gamma);
        const bool listed = std::any_of(ranges.begin(), ranges.end(),
                                        [&](const auto& r) { return r.first <= gamma && gamma <= r.last; });
        CHECK(listed == (naive::regret(alpha, gamma, bound, c.cost) <= 0.03));
      }
    }
  }
}

TEST_CASE("planning refuses intervals the wrong way round and gammas that are not allowed") {
  CHECK_THROWS_WITH(planning::minimax_gamma(interval(0.8, 0.7), {}),
                    "minimax_gamma: high is 0.7, but must be in [0.8, 1]");
  CHECK_THROWS_WITH(planning::worst_regret(interval(0.8, 0.7), 1, {}),
                    "worst_regret: high is 0.7, but must be in [0.8, 1]");
  CHECK_THROWS_WITH(planning::best_stretches(interval(0.8, 0.7), {}, 9),
                    "best_stretches: high is 0.7, but must be in [0.8, 1]");
  CHECK_THROWS_WITH(planning::regret(AcceptanceRate(0.5), 7, {{}, 6}), "regret: gamma is 7, but must be in [0, 6]");
  CHECK_THROWS_WITH(planning::best_gamma(AcceptanceRate(0.5), {{}, -1}),
                    "best_gamma: max_gamma is -1, but must be in [0, 9007199254740992]");
}
