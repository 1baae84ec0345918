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

/// The stretch of a batch.
const planning::RoundsFrom& rounds_at(std::span<const planning::RoundsFrom> rounds, double sequences) {
  const planning::RoundsFrom* found = &rounds.front();
  for (const planning::RoundsFrom& stretch : rounds) {
    if (static_cast<double>(stretch.batch_low) <= sequences) found = &stretch;
  }
  return *found;
}

}  // namespace

double BalancedLoads::tpot_at(double requests_per_second) const {
  const double load = std::log(requests_per_second);
  return std::exp(scale.value_at(load) - weight_of_load * load);
}

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
  formulas_.saturation = planning::sustainable_load(*question.cost, formulas_);
  if (formulas_.saturation) loads_ = balanced_loads(*question.cost, formulas_.rounds);
}

BalancedLoads PlannedScenario::balanced_loads(const cost::IterationCost& cost,
                                              std::span<const planning::RoundsFrom> rounds) const {
  constexpr int batches = 33;
  const double largest = std::log(std::max(1.0, saturation()->state.largest_batch));
  BalancedLoads loads;
  const auto add = [&](double load, double tpot) {
    loads.scale.add(load, std::log(tpot) + weight_of_load * std::log(load));
  };
  for (int i = 0; i < batches; ++i) {
    const double sequences = std::exp(largest * i / (batches - 1));
    const double load = balanced_rate(cost, rounds, sequences);
    const double tpot = sequences / (load * (output_tokens() - 1));
    if (i == 0) add(scale_begin * load, tpot);
    add(load, tpot);
    loads.most = std::max(loads.most, load);
  }
  return loads;
}

double PlannedScenario::balanced_rate(const cost::IterationCost& cost, std::span<const planning::RoundsFrom> rounds,
                                      double sequences) const {
  const planning::RoundsFrom& here = rounds_at(rounds, sequences);
  const cost::Iteration iteration = iteration_of(here, sequences);
  return iteration.sequences * here.tokens_per_step / ((output_tokens() - 1) * cost.seconds(iteration));
}

double PlannedScenario::load_with(double tpot_seconds, double near) const {
  return std::exp(scale().log_load_at(std::log(tpot_seconds) + weight_of_load * std::log(near)));
}

double PlannedScenario::decoding_at(double requests_per_second) const {
  if (!saturation()) return 0;
  const double load = std::min(requests_per_second, saturation()->requests_per_second);
  const double decoding = load * loads_.tpot_at(load) * (output_tokens() - 1);
  return std::min(decoding, saturation()->state.largest_batch);
}

/// With so many sequences, at least one. Each takes part in (output - 1) / E iterations, and a prompt comes for each
/// that ends.
cost::Iteration PlannedScenario::iteration_of(const planning::RoundsFrom& rounds, double sequences) const {
  const planning::OfferedLoad& offered = formulas_.load;
  cost::Iteration iteration;
  iteration.sequences = std::max(1.0, sequences);
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
