#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/population_curve.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::planning {

/// A benchmark run's counts and its gamma.
struct CountedRun {
  const traces::ServingCounts* counts = nullptr;
  std::int64_t gamma = 1;
};

/// Acceptance from runs of several gammas, each measured separately. At a gamma that was run, it is the counts of those
/// runs; elsewhere that of a population of requests that gives all of them.
///
/// Runs of one gamma are the clusters of its interval. That of a single run is of its requests, if it tells them.
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @param kind  that of the drafts
/// @throws std::invalid_argument if there are no runs
/// @throws traces::FileError if a run's counts contradict each other
/// @throws std::domain_error if the counts lack what is needed
estimate::PopulationCurve bench_acceptance(std::span<const CountedRun> runs, std::optional<cost::DraftKind> kind = {});

}  // namespace specdec::planning
