#include "sim/validation/beam_system.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "analysis/theory/tokens.hpp"
#include "sim/beam_search.hpp"

namespace specdec::validation {
namespace {

class BeamDecoder final : public MethodDecoder {
 public:
  explicit BeamDecoder(const MethodContext& context)
      : context_(context),
        target_(context.source().models.target(1)),
        draft_(context.source().models.draft(1)),
        options_{.width = context.settings().beams, .max_new_tokens = context.settings().max_new_tokens,
                 .end_token = context.settings().end_token},
        drafting_{.width = context.settings().draft_beams, .gamma = context.settings().gamma} {}

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource&) override {
    const sim::BeamSearch plain = sim::search_beams(target_.ref(), prompt, options_);
    sim::BeamSearch found = sim::search_beams_speculatively(target_.ref(), draft_.ref(), prompt, options_, drafting_);
    MethodRun run{std::move(found.counters)};
    run.beams = BeamSums{plain.counters.operations, found.beams == plain.beams ? 0 : 1};
    // Nothing is random.
    for (const sim::BeamCall& call : found.calls) {
      for (std::int64_t i = 0; i < call.kept; ++i) run.rounds.book(1, true);
      if (call.kept < call.drafted) run.rounds.book(0, false);
    }
    context_.price(run, {}, {.model_calls = static_cast<double>(run.counters.draft_calls)});
    if (context_.settings().cost) {
      run.cost += cost_of(found.calls);
      run.cost *= static_cast<double>(plain.counters.tokens) / cost_of(plain.calls);
    }
    run.text = std::move(found.beams.front().tokens);
    return run;
  }

 private:
  /// Cost of the target's calls, in calls for one token.
  double cost_of(const std::vector<sim::BeamCall>& calls) const {
    const core::StepCost& cost = *context_.settings().cost;
    double sum = 0;
    for (const sim::BeamCall& call : calls)
      sum += cost.verification(call.scored) + (call.drafted > 0 ? cost.overhead : 0);
    return sum;
  }

  const MethodContext& context_;
  sim::OwnedModel target_;
  sim::OwnedModel draft_;
  sim::BeamSearchOptions options_;
  sim::BeamDrafting drafting_;
};

/// Rounds that drafted this many steps.
std::int64_t rounds_of_gamma(const BeamRounds& rounds, std::size_t gamma) {
  const auto at_least = [&](std::size_t g) {
    if (g == 0) return rounds.rounds;
    return g <= rounds.drafted_at.size() ? rounds.drafted_at[g - 1] : 0;
  };
  return at_least(gamma) - at_least(gamma + 1);
}

}  // namespace

MethodDecoderFactory drafted_beams(const MethodContext& context) {
  return [&context] { return std::make_unique<BeamDecoder>(context); };
}

void BeamRounds::add(const MethodRun& run) {
  rounds += run.counters.steps;
  steps += run.counters.tokens;
  judged += run.rounds.judged;
  kept += run.rounds.accepted.measured;
  const std::vector<std::int64_t>& more = run.counters.drafted_at;
  drafted_at.resize(std::max(drafted_at.size(), more.size()));
  for (std::size_t j = 0; j < more.size(); ++j) drafted_at[j] += more[j];
}

IndependentBeams independent_beams(std::span<const BeamRounds> prompts) {
  double judged = 0;
  double kept = 0;
  double rounds = 0;
  for (const BeamRounds& prompt : prompts) {
    judged += prompt.judged;
    kept += prompt.kept;
    rounds += static_cast<double>(prompt.rounds);
  }
  const core::AcceptanceRate a(kept / judged);
  // Measured steps minus independent ones, and the derivative of the latter with respect to a.
  std::vector<double> differences;
  double slope = 0;
  for (const BeamRounds& prompt : prompts) {
    differences.push_back(static_cast<double>(prompt.steps));
    for (std::size_t g = 0; g <= prompt.drafted_at.size(); ++g) {
      const auto gamma = static_cast<std::int64_t>(g);
      const auto of_gamma = static_cast<double>(rounds_of_gamma(prompt, g));
      differences.back() -= of_gamma * theory::expected_tokens(a, gamma);
      slope += of_gamma * theory::expected_tokens_derivative(a, gamma);
    }
  }
  double steps = 0;
  double difference = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    steps += static_cast<double>(prompts[i].steps);
    difference += differences[i];
  }
  IndependentBeams result{(steps - difference) / rounds, {}};
  const auto n = static_cast<double>(prompts.size());
  double variance = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const double share_error = (prompts[i].kept - a.alpha() * prompts[i].judged) / judged;
    const double error = differences[i] - difference / n - slope * share_error;
    variance += error * error * n / (n - 1);
  }
  // Below one step: prompts that are all alike.
  if (prompts.size() > 1 && variance >= 1)
    result.deviation_standard_errors = difference / std::sqrt(variance);
  return result;
}

}  // namespace specdec::validation
