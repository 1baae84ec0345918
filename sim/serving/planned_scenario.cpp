#include "sim/serving/planned_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace specdec::sim {
namespace {

/// Share of the saturated rate at which the scale begins.
constexpr double scale_begin = 1.0 / 1024;
/// Weight of ln(load) beside ln(time per output token) in the scale.
constexpr double weight_of_load = 0.1;

planning::ReplicaLimits replica_limits(const ServingEngine& engine, double mean_context) {
  planning::ReplicaLimits limits;
  limits.max_num_seqs = std::min(engine.max_num_seqs, std::int64_t{1} << 20U);
  limits.max_num_batched_tokens = std::min(engine.max_num_batched_tokens, std::int64_t{1} << 31U);
  limits.prefill_first = engine.prefill_first;
  // The last block of a sequence is half empty.
  const double slack = 0.5 * static_cast<double>(engine.block_size - 1);
  limits.cache_tokens = static_cast<double>(engine.cache_blocks) * static_cast<double>(engine.block_size) *
                        mean_context / (mean_context + slack);
  return limits;
}

}  // namespace

PlannedScenario::PlannedScenario(const CapacityQuestion& question, const CapacityScenario& scenario,
                                 const std::vector<SimulatedRequest>& requests, const RoundsToCover& rounds)
    : question_(question), scenario_(scenario) {
  const ServingEngine& engine = scenario.engine;
  formulas_.load = offered_load(requests, engine);
  formulas_.limits = replica_limits(engine, formulas_.load.mean_context);
  for (const GammaFrom& stretch : engine.schedule) {
    if (stretch.gamma > 0 && question.acceptance.empty()) {
      throw std::invalid_argument(
          fmt::format("plan_capacity: acceptance is empty, but scenario '{}' drafts", scenario.name));
    }
    formulas_.rounds.push_back(rounds.rounds(question.acceptance, stretch.batch_low, stretch.gamma));
  }
  if (output_tokens() <= 1) return;
  formulas_.saturation =
      planning::sustainable_load(*question.cost, formulas_.load, formulas_.limits, formulas_.rounds, std::nullopt);
  if (formulas_.saturation) find_scale();
}

void PlannedScenario::find_scale() {
  constexpr int points = 32;
  const double most = std::log(std::max(1.0, saturation()->state.largest_batch));
  const auto add = [&](double load, double tpot) {
    scale_.add(load, std::log(tpot) + weight_of_load * std::log(load));
  };
  for (int i = 0; i <= points; ++i) {
    const cost::Iteration iteration = iteration_of(std::exp(most * i / points));
    const double tokens = rounds_at(iteration.sequences).tokens_per_step;
    const double seconds = question_.cost->seconds(iteration);
    const double load = iteration.sequences * tokens / ((output_tokens() - 1) * seconds);
    if (i == 0) add(scale_begin * load, seconds / tokens);
    add(load, seconds / tokens);
  }
}

double PlannedScenario::load_with(double tpot_seconds, double near) const {
  return std::exp(scale_.log_load_at(std::log(tpot_seconds) + weight_of_load * std::log(near)));
}

double PlannedScenario::decoding_at(double requests_per_second) const {
  if (!saturation()) return 0;
  const double load = std::log(std::min(requests_per_second, saturation()->requests_per_second));
  const double log_tpot = scale_.value_at(load) - weight_of_load * load;
  const double decoding = std::exp(load + log_tpot) * (output_tokens() - 1);
  return std::min(decoding, saturation()->state.largest_batch);
}

std::optional<planning::SteadyState> PlannedScenario::steady_at(const ReplicaLoad& load) const {
  if (!saturation() || scenario_.engine.verification_budget) return std::nullopt;
  planning::OfferedLoad offered = formulas_.load;
  offered.requests_per_second = load.requests_per_second;
  if (load.clients > 0) {
    return planning::closed_steady_state(*question_.cost, offered, formulas_.limits, formulas_.rounds, load.clients,
                                         question_.workload.outside_seconds);
  }
  return planning::steady_state(*question_.cost, offered, formulas_.limits, formulas_.rounds);
}

cost::Iteration PlannedScenario::mean_iteration(const ReplicaLoad& load) const {
  if (!saturation()) return {.sequences = 1};
  const auto state = steady_at(load);
  return iteration_of(state ? state->mean_batch : saturation()->state.mean_batch);
}

const planning::RoundsFrom& PlannedScenario::rounds_at(double sequences) const {
  const planning::RoundsFrom* rounds = &formulas_.rounds.front();
  for (const planning::RoundsFrom& stretch : formulas_.rounds) {
    if (static_cast<double>(stretch.batch_low) <= sequences) rounds = &stretch;
  }
  return *rounds;
}

/// With so many sequences, at least one. Each takes part in (output - 1) / E iterations, and a prompt comes for each
/// that ends.
cost::Iteration PlannedScenario::iteration_of(double sequences) const {
  const planning::OfferedLoad& offered = formulas_.load;
  cost::Iteration iteration;
  iteration.sequences = std::max(1.0, sequences);
  const planning::RoundsFrom& rounds = rounds_at(iteration.sequences);
  iteration.gamma = rounds.gamma;
  iteration.full_accepts = rounds.full_accepts;
  iteration.context_tokens = iteration.sequences * offered.mean_context;
  iteration.prompts = iteration.sequences * rounds.tokens_per_step / (offered.output_tokens - 1);
  const double computed =
      offered.decode_only ? 1 : std::max(1.0, offered.prompt_tokens * (1 - offered.prefix_cache_hit_rate));
  iteration.prompt_tokens = iteration.prompts * computed;
  iteration.prompt_pairs = iteration.prompts * offered.prompt_pairs;
  return iteration;
}

}  // namespace specdec::sim
