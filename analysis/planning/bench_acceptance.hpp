#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::planning {

/// A benchmark run's counts and the gamma it ran with.
struct CountedRun {
  const traces::ServingCounts* counts = nullptr;
  std::int64_t gamma = 1;
};

/// Acceptance from runs of several gammas, each measured on its own. At a gamma that was run it is what those runs
/// counted. Between two of them value and interval are interpolated linearly between what the two carry to it, so that
/// the interval holds however the two err together; the readings cover those of both. Beyond all of them it is what the
/// nearest one carries.
///
/// Runs of one gamma are the clusters of its interval. A gamma with a single run has that of independent rounds at a
/// design effect of lone_run_design_effect.
/// Source:   docs/theory.md#plans-over-batch-and-context
class BenchAcceptance : public estimate::AcceptanceCurve {
 public:
  static constexpr double lone_run_design_effect = 3;

  /// @throws std::invalid_argument if there are no runs
  /// @throws traces::FileError if a run's counts contradict each other
  /// @throws std::domain_error where counts do not say what is needed
  explicit BenchAcceptance(std::span<const CountedRun> runs);

  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;

  /// The largest gamma that was run.
  std::int64_t longest() const { return by_gamma_.rbegin()->first; }
  bool measured(std::int64_t gamma) const { return by_gamma_.count(gamma) > 0; }

 private:
  std::map<std::int64_t, estimate::MeasuredAcceptance> by_gamma_;
};

}  // namespace specdec::planning
