#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/planning/bench_acceptance.hpp"

namespace specdec::planning {

/// Two acceptance rates of runs that no single rate explains.
struct ContradictedAlpha {
  /// True if they are the rates of drafts at two positions, given that all before were accepted; else the rates that
  /// give the tokens per step at two gammas.
  bool by_position = false;
  std::int64_t first_at = 1, second_at = 1;
  double first_rate = 0, second_rate = 0;
  /// P(two of the rates differ this much | one rate), by Bonferroni over all pairs.
  double p_value = 1;
};

/// Tests whether the runs contradict one acceptance rate for all drafts, at the level .05:
///
///   p = min over pairs of n (n - 1) / 2 * 2 Phi(-|a_i - a_j| / sqrt(s_i^2 + s_j^2))
///
/// over the n counted positions, with s a 95% half-width over 1.96; without counts by position, over the
/// gammas that were run, with a the constant rate of their tokens per step. The runs are the clusters; a lone run's
/// rounds have the design effect BenchAcceptance::lone_run_design_effect. Empty if the precision is unknown.
/// Source:   docs/theory.md#from-benchmark-runs
/// @throws as BenchAcceptance
std::optional<ContradictedAlpha> contradicted_alpha(std::span<const CountedRun> runs);

}  // namespace specdec::planning
