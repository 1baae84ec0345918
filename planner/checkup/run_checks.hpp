#pragma once

#include <span>

#include "planner/checkup/finding.hpp"
#include "traces/serving/serving_counts.hpp"

/// Disagreement between benchmark runs. Only one of these checks is a test: the others state by how much two figures
/// differ, and are reported where that is beyond a fixed bound.
namespace specdec::planner {

/// Lengths of requests that differ by a smaller share are the same.
inline constexpr double alike_tokens = 0.1;
/// Times of like runs that differ by a smaller factor are the same; repeated runs of published benchmarks differ by a
/// few per cent.
inline constexpr double alike_times = 1.3;
/// Times per token of runs of one server lie within this factor of each other's; another unit is a factor of 1000.
inline constexpr double far_times = 20;

/// - "random_prompts": a speculative run over a benchmark's random tokens;
/// - "plain_run_differs": a speculative run has plain runs beside it, and none of its concurrency, its lengths of
///   prompts and answers within alike_tokens, and its model;
/// - "plain_time_contradicted": like plain runs whose times differ by alike_times;
/// - "round_below_target_pass": a round that took less than the plain step at the same load, which it contains, by more
///   than a factor of cost::rounds_agree;
/// - "drafting_loses": no run of a model with drafts comes within a factor of cost::rounds_agree of the plain run like
/// it;
/// - "round_above_its_yield": a round took longer than gamma + 1 plain steps at the same load;
/// - "throughput_falls_with_load": cost::falling_throughput;
/// - "requests_failed": a run that completed fewer requests than it sent;
/// - "times_far_apart": times per token between which there is a gap of far_times, as if some were in another unit;
/// - "run_unusable": a run that says too little or contradicts itself.
///
/// @param runs  with counts.bench each, with and without speculation
void check_runs(std::span<const traces::ServingCounts> runs, Suspicions& suspicions);

/// "round_above_its_yield" of engines' logs, with and without speculation, at batches within cost::one_load.
/// @param counts  of all files, one file after the other; those without a window of a log are passed over
void check_logs(std::span<const traces::ServingCounts> counts, Suspicions& suspicions);

}  // namespace specdec::planner
