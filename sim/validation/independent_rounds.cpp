#include "sim/validation/independent_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "analysis/core/kernels.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/standardisation.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/synthetic_rounds.hpp"

namespace specdec::validation {
namespace {

const VerifierKind& sampled_drafts() { return verifier_kinds()[0]; }
const VerifierKind& greedy_drafts() { return verifier_kinds()[1]; }

/// The rows of the source as the method sees them.
FixedLaws laws_of(const Method& method, const MethodContext& context) {
  FixedLaws laws = *context.source().fixed;
  core::standardise(laws.target, context.standardisation());
  core::standardise(laws.draft, context.standardisation());
  if (method.verifier == &greedy_drafts()) {
    const auto best = static_cast<std::size_t>(core::argmax(laws.draft));
    std::ranges::fill(laws.draft, 0);
    laws.draft[best] = 1;
  }
  return laws;
}

sim::SyntheticRoundsOptions options_of(const MethodContext& context, double tokens_per_round,
                                       const core::RunHooks& hooks) {
  const MethodSettings& settings = context.settings();
  const auto rounds = static_cast<std::int64_t>(std::ceil(static_cast<double>(settings.tokens) / tokens_per_round));
  sim::SyntheticRoundsOptions options;
  options.rounds_per_sequence = std::min<std::int64_t>(options.rounds_per_sequence, rounds);
  options.sequences = (rounds + options.rounds_per_sequence - 1) / options.rounds_per_sequence;
  options.threads = settings.threads;
  options.seed = settings.seed;
  if (settings.until_relative_error)
    options.until_relative_error = *settings.until_relative_error / core::normal_half_width_95;
  options.interrupt = hooks.interrupt;
  if (hooks.progress)
    options.progress = [progress = hooks.progress, rounds](const sim::SyntheticRounds& so_far) {
      progress(static_cast<double>(so_far.rounds()) / static_cast<double>(rounds));
    };
  return options;
}

sim::Counters counters_of(const sim::SyntheticRounds& rounds, std::int64_t gamma) {
  sim::Counters counters;
  counters.steps = counters.target_calls = rounds.rounds();
  counters.tokens = rounds.tokens();
  counters.drafted = counters.draft_calls = counters.draft_positions = counters.steps * gamma;
  counters.accepted = counters.tokens - counters.steps;
  counters.target_positions = counters.drafted + counters.steps;
  std::int64_t at_least = 0;
  for (std::int64_t n = gamma; n > 0; --n) {
    at_least += rounds.accepted_counts[static_cast<std::size_t>(n)];
    counters.accepted_at.insert(counters.accepted_at.begin(), at_least);
    counters.drafted_at.push_back(counters.steps);
  }
  return counters;
}

estimate::Estimate scaled(const estimate::Estimate& estimate, double factor) {
  estimate::Estimate result{estimate.value * factor, {}, estimate.method};
  if (estimate.ci95) result.ci95 = estimate::Interval{estimate.ci95->lo * factor, estimate.ci95->hi * factor};
  return result;
}

/// The laws of a method's rounds.
struct RoundLaws {
  core::AcceptanceRate alpha = core::AcceptanceRate(0);
  /// Empty if the rate is all that is known.
  std::optional<sim::AliasPair> pair;

  double expected_tokens(const MethodContext& context) const {
    return theory::expected_tokens(alpha, context.settings().gamma);
  }
};

RoundLaws round_laws(const Method& method, const MethodContext& context) {
  RoundLaws laws;
  if (context.source().alpha) laws.alpha = *context.source().alpha;
  if (!context.source().fixed) return laws;
  const FixedLaws rows = laws_of(method, context);
  const core::TargetDistribution p(rows.target);
  const core::DraftDistribution q(rows.draft);
  laws.alpha = core::AcceptanceRate(std::min(1.0, core::overlap(p, q)));
  laws.pair.emplace(p, q);
  return laws;
}

sim::SyntheticRounds simulated(const Method& method, const MethodContext& context, const traces::Shard& shard,
                               const core::RunHooks& hooks) {
  const RoundLaws laws = round_laws(method, context);
  const std::int64_t gamma = context.settings().gamma;
  sim::SyntheticRoundsOptions options = options_of(context, laws.expected_tokens(context), hooks);
  options.shard = shard;
  return laws.pair ? sim::simulate_rounds(*laws.pair, gamma, options)
                   : sim::simulate_rounds(laws.alpha, gamma, options);
}

}  // namespace

bool runs_in_rounds(const Method& method, const MethodContext& context) {
  const MethodSource& source = context.source();
  if (!source.fixed && !source.alpha) return false;
  const bool knows_tokens = source.fixed.has_value();
  return method.draft == &draft_kinds().front() &&
         method.policy == &policy_kinds().front() &&
         (method.verifier == &sampled_drafts() || (knows_tokens && method.verifier == &greedy_drafts())) &&
         context.settings().gamma <= most_independent_drafts;
}

std::vector<std::int64_t> count_rounds(const Method& method, const MethodContext& context, const traces::Shard& shard,
                                       const core::RunHooks& hooks) {
  return simulated(method, context, shard, hooks).accepted_counts;
}

void add_rounds(const Method& method, const MethodContext& context, const std::vector<std::int64_t>& accepted_counts,
                ComparedMethods& compared) {
  sim::SyntheticRounds rounds;
  rounds.accepted_counts = accepted_counts;
  if (rounds.rounds() == 0) return;
  const RoundLaws laws = round_laws(method, context);
  const MethodSettings& settings = context.settings();
  const double expected = laws.expected_tokens(context);
  MethodResult result;
  result.method = method;
  result.sequences = rounds.rounds() / options_of(context, expected, {}).rounds_per_sequence;
  result.counters = counters_of(rounds, settings.gamma);
  result.tokens_per_step = {*rounds.tokens_per_step(), {}, "mean of independent rounds"};
  if (const std::optional<double> error = rounds.standard_error()) {
    const double half = core::normal_half_width_95 * *error;
    result.tokens_per_step.ci95 =
        estimate::Interval{result.tokens_per_step.value - half, result.tokens_per_step.value + half};
    if (*error > 0) result.deviation_standard_errors = (result.tokens_per_step.value - expected) / *error;
  }
  result.closed_form_tokens_per_step = expected;
  result.acceptance = {laws.alpha.alpha(), {}, "closed form of the laws"};
  result.target_calls_per_token = 1 / result.tokens_per_step.value;
  result.draft_calls_per_token = static_cast<double>(settings.gamma) / result.tokens_per_step.value;
  if (settings.cost) result.speedup = scaled(result.tokens_per_step, 1 / (*settings.cost)(settings.gamma));
  compared.results.push_back(std::move(result));
}

void run_in_rounds(const Method& method, const MethodContext& context, const core::RunHooks& hooks,
                   ComparedMethods& compared) {
  const sim::SyntheticRounds rounds = simulated(method, context, {}, hooks);
  if (context.settings().until_relative_error && !rounds.precise && rounds.rounds() > 0)
    compared.imprecise.push_back(method);
  add_rounds(method, context, rounds.accepted_counts, compared);
}

}  // namespace specdec::validation
