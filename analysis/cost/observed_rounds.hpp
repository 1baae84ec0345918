#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::cost {

/// A benchmark run's rounds, with what they were inferred from.
struct BenchRounds {
  ObservedRound round = {};
  /// (accepted + rounds) / rounds; 1 for a run without speculation.
  double tokens_per_step = 1;
  /// round.seconds / tokens_per_step = mean_tpot.
  double seconds_per_output_token = 0;
  double output_tokens_per_second = 0;
};

/// Rounds of a benchmark run from its own means:
///
///   batch   = output_throughput * mean_tpot        (Little's law: requests in their decoding phase)
///   gamma   = drafted / rounds                     (0 where nothing was drafted)
///   tokens per step = 1 + accepted / rounds
///   seconds = mean_tpot * tokens per step
///   context = (total_input_tokens + total_output_tokens / 2) / completed
///
/// mean_tpot is per token, so a round is never inferred from mean_itl, whose meaning differs by engine and release.
/// @param run    with counts.bench
/// @param gamma  drafted tokens per round, where the run does not count them or is known to be fixed
/// @throws traces::FileError that names the key where one is missing, not positive or contradicts another
BenchRounds bench_rounds(const traces::ServingCounts& run, std::optional<double> gamma = std::nullopt);

/// Rounds of the windows of an engine's log, from those that neither read prompts nor changed the number of running
/// requests:
///
///   seconds = running * tokens per step / generation_tokens_per_second
///
/// A window counts if its prompt throughput is 0, nothing waits, and running is the same in the windows before and
/// after it (both present); other windows hold idle time. Context is unknown.
/// @param windows  in the order of the log
std::vector<ObservedRound> window_rounds(std::span<const traces::ServingCounts> windows,
                                         std::optional<double> gamma = std::nullopt);

}  // namespace specdec::cost
