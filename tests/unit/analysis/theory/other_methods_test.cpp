// Other drafts and policies that stop drafting: printed values, and an oracle that takes another way.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/known_acceptance.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/other_drafts.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
using core::DraftDistribution;
using core::TargetDistribution;
using Row = std::vector<double>;

Approx printed(double value) { return Approx(value).epsilon(1e-11); }
Approx exactly(double value) { return Approx(value).epsilon(1e-14); }

}  // namespace

TEST_CASE("a copied token is accepted with the target's probability of it, in the steps that find one") {
  const Row p = {0.5, 0.3, 0.2};
  const Row copied = {0, 1, 0};
  CHECK(core::acceptance_rate(TargetDistribution(p), DraftDistribution(copied)).alpha() == exactly(0.3));
  CHECK(copying_speedup(0.4, AcceptanceRate(0.9), 10) == printed(3.34475761564));
  CHECK(copying_speedup(1, AcceptanceRate(0.8), 5, {.c = 0.05}) ==
        exactly(walltime_improvement(AcceptanceRate(0.8), 5, 0.05)));
  CHECK(copying_speedup(0, AcceptanceRate(0.8), 5, {.c = 0.05}) == 1);
  CHECK_THROWS_AS(copying_speedup(1.1, AcceptanceRate(0.8), 5), std::domain_error);
}

TEST_CASE("a draft that proposes all tokens in one call gains with every one of them") {
  const auto heads = core::AcceptanceProfile::from_conditional(
      {AcceptanceRate(0.8), AcceptanceRate(0.7), AcceptanceRate(0.6), AcceptanceRate(0.5)});
  const double expected[] = {1.63636363636, 2.14545454545, 2.45090909091, 2.60363636364};
  for (std::int64_t gamma = 1; gamma <= 4; ++gamma)
    CHECK(parallel_draft_speedup(heads, gamma, {.c = 0.1}) == printed(expected[gamma - 1]));
  CHECK(parallel_draft_speedup(heads, 0, {.c = 0.1}) == 1);
}

TEST_CASE("fixed gammas over eight known acceptances are slower than the program") {
  const Row text = {0.9, 0.3, 0.95, 0.8, 0.2, 0.7, 0.9, 0.5};
  const double expected[] = {1.48855830821, 1.82703730189, 1.81233292556, 1.83495026092, 1.79594733708};
  for (std::size_t gamma = 1; gamma <= 5; ++gamma) {
    Row remaining(text.size() + 1, 0.0);
    for (std::size_t t = text.size(); t-- > 0;) {
      const std::size_t drafts = std::min(gamma, text.size() - t - 1);
      remaining[t] = 1 + 0.1 * static_cast<double>(drafts);
      double survives = 1;
      for (std::size_t k = 1; k <= drafts; ++k) {
        remaining[t] += survives * (1 - text[t + k - 1]) * remaining[t + k];
        survives *= text[t + k - 1];
      }
      remaining[t] += survives * remaining[t + drafts + 1];
    }
    CHECK(8 / remaining[0] == printed(expected[gamma - 1]));
    CHECK(remaining[0] > known_acceptance_program(text, 5, {.c = 0.1}).cost);
  }
}

}  // namespace specdec::theory
