#include "analysis/planning/speedup_map.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "analysis/planning/best_gamma.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planning::gamma_boundaries;

TEST_CASE("boundaries between best gammas are the paper's ties for the paper's costs") {
  const std::vector<double> rates = {0.05, 0.3, 0.6, 0.8, 0.95, 0.99};
  const std::vector<std::int64_t> gammas = {1, 2, 3, 5, 8, 20};
  const auto boundaries = gamma_boundaries(rates, gammas, {}, 1024);
  REQUIRE(boundaries.size() == gammas.size());
  for (const auto& boundary : boundaries) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const double tie = theory::tie_cost(core::AcceptanceRate(rates[i]), boundary.gamma);
      // At rates so low that a further draft adds less than 1e-12 tokens, rounding decides.
      if (tie > 1e-5) CHECK(boundary.c[i] == Approx(tie).epsilon(1e-9));
    }
  }
}

TEST_CASE("boundaries are where the best gamma of any verification cost changes") {
  const std::array<core::VerificationCost::Point, 3> points = {{{2, 1.05}, {4, 1.4}, {8, 1.5}}};
  core::StepCost cost{0, 0.02, core::VerificationCost::table(points)};
  const std::vector<double> rates = {0.4, 0.7, 0.9};
  for (const auto& boundary : gamma_boundaries(rates, {1, 2, 3, 4, 6}, cost, 200)) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const auto best_at = [&](double c) {
        cost.c = c;
        return planning::best_gamma(core::AcceptanceRate(rates[i]), {cost, 200}).gamma;
      };
      if (boundary.c[i] == 0) {
        CHECK(best_at(1e-6) < boundary.gamma);
      } else {
        CHECK(best_at(boundary.c[i] * (1 + 1e-9)) < boundary.gamma);
        CHECK(best_at(boundary.c[i] * (1 - 1e-9)) >= boundary.gamma);
      }
    }
  }
}

TEST_CASE("the map holds the best gamma's speedup at every pair, costs going slowest") {
  const std::vector<double> rates = {0.5, 0.8};
  const std::vector<double> costs = {0.01, 0.1, 0.9};
  const auto map = planning::speedup_map(rates, costs, {}, 64);
  REQUIRE(map.speedup.size() == 6);
  for (std::size_t c = 0; c < costs.size(); ++c) {
    for (std::size_t r = 0; r < rates.size(); ++r) {
      double best = 1;
      for (int gamma = 1; gamma <= 64; ++gamma) {
        const double tokens = (1 - std::pow(rates[r], gamma + 1)) / (1 - rates[r]);
        best = std::max(best, tokens / (1 + costs[c] * gamma));
      }
      CHECK(map.speedup[c * 2 + r] == Approx(best).epsilon(1e-13));
    }
  }
  CHECK(map.gamma[5] == 0);
  CHECK_THROWS_AS(planning::speedup_map({1.5}, {0.1}, {}, 8), std::domain_error);
  CHECK_THROWS_AS(gamma_boundaries({0.5}, {9}, {}, 8), std::domain_error);
}
