#pragma once

#include <cstdint>
#include <optional>

#include "analysis/cost/iteration_cost.hpp"

namespace specdec::planning {

/// What reaches one replica of a service, in means.
struct OfferedLoad {
  /// > 0
  double requests_per_second = 0;
  /// Tokens, >= 1; the mean, and the mean of (prompt + output / 2) weighed by output: the context that decoding sees.
  double prompt_tokens = 1;
  double output_tokens = 1;
  double mean_context = 0;
  /// Share of the prompts' positions that need not be computed, [0, 1).
  double prefix_cache_hit_rate = 0;
  bool decode_only = false;
};

/// A replica of the service.
struct ReplicaLimits {
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 8192;
  /// Tokens that its cache holds, > 0.
  double cache_tokens = 0;
};

/// What limits a service.
enum class CapacityLimit { none, compute, max_num_seqs, cache, batched_tokens, ttft, tpot };
/// "compute", "max_num_seqs", "cache", "batched_tokens", "ttft", "tpot"; "none".
std::string_view name_of(CapacityLimit limit);

struct SteadyState {
  /// Sequences that decode, and seconds of an iteration that carries them and their share of prompts.
  double mean_batch = 0;
  double iteration_seconds = 0;
  /// iteration_seconds / tokens per step.
  double tpot_seconds = 0;
  double output_tokens_per_second = 0;
  /// Share of time that iterations are under way where they are shorter than the gaps, [0, 1].
  double busy_share = 0;
};

/// The replica in equilibrium, by Little's law:
///
///   B = lambda (output - 1) T / E;   T = seconds of an iteration with B rounds of gamma and lambda T prompts
///
/// the smallest T that satisfies both. A sequence decodes from its first token, which its prompt's last iteration puts
/// out.
/// Source:   Little 1961; docs/capacity.md#steady-state
/// @param tokens_per_step  E, [1, gamma + 1]
/// @return nothing where no T does: the load is more than the replica can take
/// @throws std::domain_error if a value is outside its range
std::optional<SteadyState> steady_state(const cost::IterationCost& cost, const OfferedLoad& load, std::int64_t gamma,
                                        double tokens_per_step, double full_accepts);

/// The largest load with an equilibrium within the replica's limits.
struct SustainableLoad {
  double requests_per_second = 0;
  /// At that load.
  SteadyState state;
  CapacityLimit limited_by = CapacityLimit::compute;
};

/// @param tpot_seconds  upper bound on the mean time per output token; nothing for none
/// @param load  its requests_per_second is not used
/// @return nothing where no load meets the limits
/// Accuracy: relative error of the load <= 1e-6
std::optional<SustainableLoad> sustainable_load(const cost::IterationCost& cost, const OfferedLoad& load,
                                                const ReplicaLimits& limits, std::int64_t gamma, double tokens_per_step,
                                                double full_accepts, std::optional<double> tpot_seconds);

}  // namespace specdec::planning
