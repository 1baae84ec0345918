#pragma once

#include <optional>

#include "analysis/core/run_hooks.hpp"
#include "planner/load/capacity.hpp"

namespace specdec::planner {

/// Sizes the replicas that compute the prompts of a pool that decodes, for the load that its answer shows, by a
/// simulation in which requests end with their first token.
///
///   bytes = prompt (cached bytes per token of target and draft),   transfer = bytes / (accelerators link)
///
/// the accelerators being the fewer of a replica of the two pools. The limit on the time to first token is what the way
/// of the caches and the first round of the other pool, at its percentile, leave. Source:
/// docs/capacity.md#prefill-and-decode-apart
/// @param cost     that of the replicas that decode
/// @param decoding  answered, with its question's `prefill`
/// @throws QuestionError if prompts do not fit, or the limit leaves no time for them
PrefillPool prefill_pool(const std::optional<Acceptance>& acceptance, const Cost& cost, const Capacity& decoding,
                         const core::RunHooks& hooks = {});

/// The figures of both pools together.
struct BothPools {
  /// Empty if one of them has none.
  std::optional<std::int64_t> gpus;
  /// From the fewest of both to the most of both over all that is uncertain; empty if one of them has no range.
  std::optional<sim::GpuRange> gpu_range;
  /// To the first token, at the percentile of the question: the sum of those of the two pools and of a mean prompt's
  /// way.
  std::optional<double> ttft_seconds;
  std::optional<double> gpu_seconds_per_token, cost_per_million_tokens;
};

/// @param capacity  with a prefill pool
BothPools both_pools(const Capacity& capacity);

/// Requests/s that it is sized for: those that are asked for, else those of one replica that decodes.
double pool_requests_per_second(const Capacity& decoding);

}  // namespace specdec::planner
