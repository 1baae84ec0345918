#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::planning {

/// A benchmark run's counts and its gamma.
struct CountedRun {
  const traces::ServingCounts* counts = nullptr;
  std::int64_t gamma = 1;
};

/// Acceptance from runs of several gammas, each measured separately. At a gamma that was run, it is the counts of those
/// runs. Between two of them value and interval are interpolated linearly between what the two predict there, so that
/// the interval holds however the two errors are correlated; the readings cover those of both. Beyond all of them it is
/// the prediction of the nearest one.
///
/// Where longer drafts counted fewer tokens per step than shorter ones, which no acceptance does, all take the mean of
/// these counts by rounds (pooled adjacent violators), and their readings hold what was counted.
///
/// Runs of one gamma are the clusters of its interval. A gamma with a single run has the interval of independent rounds
/// with design effect lone_run_design_effect.
/// Source:   docs/theory.md#plans-over-batch-and-context
class BenchAcceptance : public estimate::AcceptanceCurve {
 public:
  static constexpr double lone_run_design_effect = 3;

  /// @param may_miss  as in estimate::MeasuredAcceptance::Options
  /// @throws std::invalid_argument if there are no runs
  /// @throws traces::FileError if a run's counts contradict each other
  /// @throws std::domain_error if the counts lack what is needed
  explicit BenchAcceptance(std::span<const CountedRun> runs, bool may_miss = false);

  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;

  /// The largest gamma among the runs.
  std::int64_t longest() const { return by_gamma_.rbegin()->first; }
  bool measured(std::int64_t gamma) const { return by_gamma_.count(gamma) > 0; }

 private:
  struct Measured {
    estimate::MeasuredAcceptance acceptance;
    double rounds = 1;
    /// Tokens per step over those that were counted at this gamma.
    double pooled = 1;

    /// What the runs of this gamma predict at another one.
    estimate::TokensPerStep tokens_at(std::int64_t gamma) const;
  };

  void pool();
  /// At a gamma between two neighbours that were run; no less than at any shorter one between them.
  estimate::TokensPerStep between_runs(std::int64_t gamma, std::int64_t shorter, std::int64_t longer) const;

  std::map<std::int64_t, Measured> by_gamma_;
};

}  // namespace specdec::planning
