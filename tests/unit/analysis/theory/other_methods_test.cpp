// Other drafts, other systems and policies that stop drafting: printed values, and an oracle that takes another way.
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
#include "analysis/theory/other_systems.hpp"
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
  Row residual(3);
  core::residual_distribution(TargetDistribution(p), DraftDistribution(copied), residual);
  CHECK(residual[0] == exactly(0.5 / 0.7));
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

TEST_CASE("a draft that has a draft pays for the end of each block") {
  const InnerDraft inner = {AcceptanceRate(0.7), 3, {.c = 0.05}};
  CHECK(hierarchical_speedup(AcceptanceRate(0.8), 5, {.c = 0.1}, inner) == printed(2.90950386827));
  CHECK(hierarchical_speedup(AcceptanceRate(0.9), 10, {.c = 0.2}, {AcceptanceRate(0.8), 4, {.c = 0.05}}) ==
        printed(3.83988699786));
  // An inner draft that is never asked leaves the plain one, and the inner speedup of long texts flatters.
  CHECK(hierarchical_speedup(AcceptanceRate(0.8), 5, {.c = 0.1}, {AcceptanceRate(0.7), 0, {.c = 0.05}}) ==
        exactly(2.45952));
  const double inner_speedup = walltime_improvement(AcceptanceRate(0.7), 3, 0.05);
  CHECK(walltime_improvement(AcceptanceRate(0.8), 5, 0.1 / inner_speedup) == printed(3.00673945946));
  CHECK(hierarchical_speedup(AcceptanceRate(0.8), 0, {.c = 0.1}, inner) == 1);
}

TEST_CASE("beam search with a drafted beam gains by the steps it keeps") {
  const SpeculativeBeams beams = speculative_beams(AcceptanceRate(0.7), 4, 6, 3, 0.05);
  CHECK(beams.speedup == printed(2.20260869565));
  CHECK(beams.operations == printed(2.17133833399));
  CHECK(beams.target_evaluations == 22);
  const SpeculativeBeams single = speculative_beams(AcceptanceRate(0.8), 1, 1, 5, 0.05);
  CHECK(single.speedup == exactly(walltime_improvement(AcceptanceRate(0.8), 5, 0.05)));
  CHECK_THROWS_AS(speculative_beams(AcceptanceRate(0.8), 4, 3, 5, 0.05), std::domain_error);
}

TEST_CASE("blockwise decoding takes the runs that its heads' accuracies say") {
  const BlockwiseDecoding perfect = blockwise_decoding(Row{1, 1, 1}, 100);
  CHECK(perfect.two_call_runs == 50);
  CHECK(perfect.merged_runs == 26);
  const BlockwiseDecoding heads = blockwise_decoding(Row{0.8, 0.6, 0.4}, 100);
  CHECK(heads.block_tokens == exactly(2.472));
  CHECK(heads.two_call_runs == Approx(80.906149).epsilon(1e-8));
  CHECK(heads.merged_runs == Approx(41.453074).epsilon(2e-8));
  CHECK(heads.merged_speedup == exactly(100 / heads.merged_runs));
  CHECK(blockwise_decoding({}, 7).two_call_speedup == 0.5);
}

TEST_CASE("early exits save the layers that they skip, less what looking costs") {
  const Row exits = {0, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1};
  CHECK(early_exit(exits, 0).layers == exactly(4.2));
  CHECK(early_exit(exits, 0).speedup == printed(1.90476190476));
  CHECK(early_exit(exits, 0.05).speedup == printed(1.81405895692));
  CHECK_THROWS_AS(early_exit(Row{0.5, 0.4}, 0), std::domain_error);
  CHECK_THROWS_AS(early_exit({}, 0), std::domain_error);
}

TEST_CASE("copying the input costs a run per edit and those until it matches again") {
  CHECK(input_copy_speedup(30, 0, 1) == 30);
  CHECK(input_copy_speedup(30, 1, 1) == 10);
  CHECK(input_copy_speedup(30, 2, 1) == 6);
  CHECK(input_copy_speedup(30, 5, 1) == Approx(2.727273).epsilon(1e-6));
  CHECK_THROWS_AS(input_copy_speedup(30, 20, 1), std::domain_error);
}

TEST_CASE("a function started on a guess of its input gains where the guess is kept") {
  CHECK(chained_speedup(AcceptanceRate(0.8), {1, 0, 1}) == exactly(5.0 / 3));
  CHECK(chained_speedup(AcceptanceRate(0.8), {1, 0.1, 1}) == exactly(25.0 / 16));
  CHECK(chained_speedup(AcceptanceRate(0.5), {2, 0.1, 1}) == exactly(6.0 / 5));
  CHECK(chained_speedup(AcceptanceRate(0.9), {1, 0.5, 3}) == exactly(80.0 / 71));
  CHECK(chained_speedup(AcceptanceRate(0.9), {1, 5, 3}) == 1);
  CHECK(chained_speedup(AcceptanceRate(1), {1, 0, 1}) == 2);
  CHECK_THROWS_AS(chained_speedup(AcceptanceRate(1), {0, 0, 0}), std::domain_error);
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
