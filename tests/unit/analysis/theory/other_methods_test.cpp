// Other drafts, other systems and policies that stop drafting: printed values, and an oracle that takes another way.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/adaptive_drafting.hpp"
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

Row repeated(const Row& row, std::size_t times) {
  Row rows;
  for (std::size_t i = 0; i < times; ++i) rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

const VaryingAcceptance easy_or_hard = {{0.95, 0.3}, {0.7, 0.3}};

// The most that a rule can gain over lambda times its cost, by dynamic programming over how often each of two
// acceptances has come.
double best_surplus(const VaryingAcceptance& law, double c, double lambda, DraftForesight foresight, int first = 0,
                    int second = 0, int limit = 60) {
  static std::vector<double> memory;
  if (first + second == 0) memory.assign(61 * 61, std::numeric_limits<double>::quiet_NaN());
  if (first + second == limit) return 0;
  double& known = memory[static_cast<std::size_t>(first * 61 + second)];
  if (!std::isnan(known)) return known;
  const double survival = std::pow(law.values[0], first) * std::pow(law.values[1], second);
  double go_on = 0;
  for (int i = 0; i < 2; ++i) {
    const double draft = -lambda * c + survival * law.values[static_cast<std::size_t>(i)] +
                         best_surplus(law, c, lambda, foresight, first + (i == 0), second + (i == 1), limit);
    go_on +=
        law.weights[static_cast<std::size_t>(i)] * (foresight == DraftForesight::next ? std::max(0.0, draft) : draft);
  }
  return known = std::max(0.0, go_on);
}

}  // namespace

TEST_CASE("a draft that knows nothing is accepted with what the target spreads evenly") {
  CHECK(uniform_draft_acceptance(TargetDistribution(Row{1, 0, 0, 0})).alpha() == 0.25);
  CHECK(uniform_draft_acceptance(TargetDistribution(Row{0.5, 0.25, 0.125, 0.125})).alpha() == 0.75);
  Row worst(32000, 0.0);
  worst[5] = 1;
  const AcceptanceRate least = uniform_draft_acceptance(TargetDistribution(worst));
  CHECK(oracle_tokens(least) == Approx(1.000031250977).epsilon(1e-12));
  // At worst: 1 + 1/V at gamma 1, (1 - V^-(gamma+1)) / (1 - 1/V) at any, and 1 / (1 - 1/V) in the limit alone.
  const AcceptanceRate quarter = uniform_draft_acceptance(TargetDistribution(Row{0, 0, 1, 0}));
  CHECK(expected_tokens(quarter, 1) == 1.25);
  CHECK(expected_tokens(quarter, 3) == Approx((1 - 1.0 / 256) / 0.75).epsilon(1e-14));
  CHECK(oracle_tokens(quarter) == Approx(4.0 / 3).epsilon(1e-14));
  Row zipf(32000);
  double sum = 0;
  for (std::size_t x = 0; x < zipf.size(); ++x) sum += zipf[x] = 1 / static_cast<double>(x + 1);
  for (double& value : zipf) value /= sum;
  CHECK(uniform_draft_acceptance(TargetDistribution(zipf)).alpha() == Approx(0.309865395910).epsilon(1e-11));
}

TEST_CASE("an n-gram draft is accepted as the long-run law of its contexts says") {
  const Row chain = {0.7, 0.2, 0.1, 0.1, 0.6, 0.3, 0.4, 0.4, 0.2};
  const Row law = stationary_law(chain, 3);
  CHECK(law[0] == exactly(0.4));
  CHECK(law[1] == exactly(0.4));
  CHECK(law[2] == exactly(0.2));
  const auto alpha = [&](const Row& target, const Row& draft) {
    return core::mean_acceptance(core::acceptance_rates(target, repeated(draft, 3), 3), law).alpha();
  };
  const Row thirds(3, 1.0 / 3);
  const Row greedy_chain = {1, 0, 0, 0, 1, 0, 1, 0, 0};
  CHECK(alpha(chain, law) == exactly(19.0 / 25));
  CHECK(alpha(chain, thirds) == exactly(18.0 / 25));
  CHECK(alpha(chain, {1, 0, 0}) == exactly(2.0 / 5));
  CHECK(alpha(greedy_chain, {1, 0, 0}) == exactly(3.0 / 5));
}

TEST_CASE("the long-run law is left alone by its chain, and chains that have none are refused") {
  test_support::RandomCases cases(31);
  for (int i = 0; i < 20; ++i) {
    const auto states = static_cast<std::size_t>(1 + cases.below(6));
    Row chain;
    for (std::size_t row = 0; row < states; ++row)
      for (const double value : cases.row(states)) chain.push_back(0.99 * value + 0.01 / static_cast<double>(states));
    const Row law = stationary_law(chain, static_cast<std::int64_t>(states));
    for (std::size_t to = 0; to < states; ++to) {
      double next = 0;
      for (std::size_t from = 0; from < states; ++from) next += law[from] * chain[from * states + to];
      CHECK(next == Approx(law[to]).epsilon(1e-13));
    }
  }
  CHECK_THROWS_AS(stationary_law(Row{1, 0, 0, 1}, 2), std::domain_error);
  CHECK_THROWS_AS(stationary_law(Row{1, 0, 0.5, 0.6}, 2), std::domain_error);
  CHECK_THROWS_AS(stationary_law(Row{1, 0, 1}, 2), std::invalid_argument);
}

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

TEST_CASE("stopping by the survival of the drafts gains more than the best fixed gamma and less than an oracle") {
  CHECK(easy_or_hard.mean() == exactly(0.755));
  CHECK(optimal_gamma(AcceptanceRate(0.755), 0.1).speedup == printed(2.21709559573));
  const BestStopping seen = best_stopping(easy_or_hard, 0.1, DraftForesight::drafted, 200);
  CHECK(seen.step.speedup == printed(2.4403232915));
  CHECK(seen.step.tokens == printed(3.25354176002));
  CHECK(seen.step.cost == printed(1.33324210418));
  CHECK(seen.survival_threshold == Approx(0.323221628).epsilon(1e-8));
  CHECK(seen.step.at_limit == 0);
  CHECK(best_stopping(easy_or_hard, 0.1, DraftForesight::next, 200).step.speedup == printed(2.45941715236));
  CHECK(oracle_speedup(AcceptanceRate(0.755), 0.1) == printed(3.12012480499));
}

TEST_CASE("a threshold on the chance of some rejection has the speedup that exact enumeration says") {
  // By the survival below which a step ends; at .3 a first hard token just does not.
  const double expected[][2] = {
      {0.7, 2.39234253997}, {0.5, 2.43884300318}, {0.4, 2.44019858618}, {0.3, 2.43646273638}, {0.1, 2.3165189306}};
  for (const auto& [threshold, speedup] : expected)
    CHECK(survival_threshold_step(easy_or_hard, 0.1, threshold, 200).speedup == printed(speedup));
}

TEST_CASE("one acceptance makes the best stopping rule the optimal fixed gamma") {
  const struct {
    double alpha, c, rejection_threshold;
  } cases[] = {{0.8, 0.05, 0.845396022857}, {0.9, 0.1, 0.656905298045}, {0.5, 0.2, 0.75}};
  for (const auto& [alpha, c, h] : cases) {
    const BestStopping best = best_stopping({{alpha}, {1}}, c, DraftForesight::next, 200);
    CHECK(best.step.speedup == exactly(optimal_gamma(AcceptanceRate(alpha), c).speedup));
    CHECK(1 - best.survival_threshold == printed(h));
    const BestStopping seen = best_stopping({{alpha}, {1}}, c, DraftForesight::drafted, 200);
    CHECK(seen.step.speedup == best.step.speedup);
    CHECK(seen.survival_threshold == exactly(best.survival_threshold / alpha));
  }
}

TEST_CASE("no rule that stops by what it knows gains more than the best threshold") {
  test_support::RandomCases cases(32);
  for (int i = 0; i < 10; ++i) {
    const double share = cases.uniform();
    const VaryingAcceptance law = {{0.9 * cases.uniform(), 0.9 * cases.uniform()}, {share, 1 - share}};
    const double c = 0.02 + 0.2 * cases.uniform();
    for (const auto foresight : {DraftForesight::drafted, DraftForesight::next}) {
      INFO("case " << i);
      const double lambda = best_stopping(law, c, foresight, 60).step.speedup;
      CHECK(1 - lambda + best_surplus(law, c, lambda, foresight) == Approx(0).margin(1e-12));
    }
    const double best = best_stopping(law, c, DraftForesight::drafted, 60).step.speedup;
    for (int t = 0; t <= 10; ++t) {
      CHECK(survival_threshold_step(law, c, t / 10.0, 60).speedup <= best + 1e-13);
      CHECK(confidence_threshold_step(law, c, t / 10.0, 60).speedup <= best + 1e-13);
    }
  }
}

TEST_CASE("a threshold that never stops drafts the fixed gamma") {
  for (const auto& step :
       {survival_threshold_step(easy_or_hard, 0.1, 0, 7), confidence_threshold_step(easy_or_hard, 0.1, 0, 7)}) {
    CHECK(step.tokens == exactly(expected_tokens(AcceptanceRate(0.755), 7)));
    CHECK(step.drafted == exactly(7));
    CHECK(step.at_limit == exactly(1));
  }
  // Tokens below the threshold end the step; what follows the others is drafted again: a geometric number of drafts.
  const AdaptiveStep confident = confidence_threshold_step(easy_or_hard, 0.1, 0.5, 2000);
  CHECK(confident.drafted == exactly(1 / 0.3));
  CHECK(confident.tokens == exactly(1 + 0.755 / (1 - 0.7 * 0.95)));
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
    CHECK(remaining[0] > known_acceptance_cost(text, 5, {.c = 0.1}));
  }
}

TEST_CASE("laws of acceptance that are none are refused") {
  CHECK_THROWS_AS(best_stopping({{0.5}, {0.9}}, 0.1, DraftForesight::next, 10), std::domain_error);
  CHECK_THROWS_AS(best_stopping({{0.5}, {}}, 0.1, DraftForesight::next, 10), std::invalid_argument);
  CHECK_THROWS_AS(best_stopping({{}, {}}, 0.1, DraftForesight::next, 10), std::invalid_argument);
  CHECK_THROWS_AS(best_stopping({{1.5}, {1}}, 0.1, DraftForesight::next, 10), std::domain_error);
  CHECK_THROWS_AS(best_stopping({{0.5}, {1}}, -0.1, DraftForesight::next, 10), std::domain_error);
  CHECK_THROWS_AS(survival_threshold_step({{0.5}, {1}}, 0.1, 1.5, 10), std::domain_error);
  CHECK_THROWS_AS(survival_threshold_step({{0.5}, {1}}, 0.1, 0.5, -1), std::domain_error);
}

}  // namespace specdec::theory
