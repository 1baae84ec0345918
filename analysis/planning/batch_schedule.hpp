#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {

/// The batch of schedules that a mean one, > 0, belongs to: rounded, and at least 1.
double whole_batch(double batch);

/// What of a DeploymentQuestion a schedule depends on, see there.
struct ScheduleRule {
  double tolerance = 0.01;
  double prefer_measured = measured_preference;
  double min_gain = 0.05;
  /// Batches that need not be whole, each > 0: a whole batch that one of them rounds to is priced there, so that it has
  /// the answer of that point; of several the nearest.
  std::vector<double> points = {};
};

/// The fewest stretches of batches 1 to `up_to` such that no batch's gamma regrets more than the tolerance, or than the
/// least that some gamma regrets there, whichever is larger; regrets are the largest over the contexts. Where plain
/// decoding is best, or where at no context the gamma to take is 1 + min_gain times as fast, a stretch has gamma = 0,
/// and nowhere else. Within a stretch the gamma whose largest regret is least is taken, the smaller one of ties.
/// Batches of different bases are in stretches of their own: one is not_priced where some context is, as plan_point has
/// it, and extrapolated where one of the others is.
///
/// Where at every context plain decoding or some gamma that was measured loses no more than prefer_measured by the
/// reading that has it smallest, the regrets are against the best of these, and infinite for others.
///
/// Time:     O(up_to contexts gammas)
/// Source:   docs/theory.md#plans-over-batch-and-context
std::vector<PlannedStretch> batch_schedule(const DraftScan& scan, const std::vector<double>& contexts,
                                           std::int64_t up_to, const ScheduleRule& rule = {});

/// The verdict of a whole batch over the contexts, by the intervals of its points, as PlannedStretch::verdict has it.
///
/// Time:     that of plan_point for each context
Verdict batch_verdict(const DraftScan& scan, std::int64_t batch, const DeploymentQuestion& question,
                      const ScheduleRule& rule);

/// Where the verdicts change around the crossover batch, by bisection: below it from speculate, above it to
/// do_not_speculate. Between two batches of one verdict others are taken to have it, too.
CrossoverBounds crossover_bounds(const DraftScan& scan, std::int64_t crossover, const DeploymentQuestion& question,
                                 const ScheduleRule& rule);

/// The first batch of the last stretches of gamma = 0 that are decided: from there on no draft gains min_gain.
/// @param extrapolate  as in DeploymentQuestion
std::optional<std::int64_t> crossover_batch(const std::vector<PlannedStretch>& schedule, bool extrapolate);

/// Where a schedule does not draft the best gamma of a point.
struct ScheduleLoss {
  double batch = 1;
  /// Of the schedule, and of the point.
  std::int64_t scheduled = 0, best = 0;
  /// The share of the point's speedup that the schedule gives away, [0, 1].
  double regret = 0;
  /// Of the point's best gamma.
  double speedup = 1;
};

/// The point of a plan at which its schedule loses most; nothing where it has the best gamma at all points. A batch
/// that is not whole is rounded.
std::optional<ScheduleLoss> largest_schedule_loss(const DraftPlan& plan);

}  // namespace specdec::planning
