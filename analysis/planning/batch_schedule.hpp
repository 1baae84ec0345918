#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {

/// The integer batch of a schedule that stands for a mean batch > 0: rounded, and at least 1.
double whole_batch(double batch);

/// The part of a DeploymentQuestion on which a schedule depends.
struct ScheduleRule {
  double tolerance = 0.01;
  double prefer_measured = measured_preference;
  double min_gain = 0.05;
  bool max_gamma_is_default = false;
  /// As in DeploymentQuestion.
  bool extrapolate = false;
  /// Batches, not necessarily integers, each > 0: an integer batch that one of them rounds to is priced there, so that
  /// it has the answer of that point; if there are several, the nearest.
  std::vector<double> points = {};
};

/// The batch at which an integer batch is priced: the nearest of the points that round to it, else itself.
double priced_at(std::int64_t batch, const ScheduleRule& rule);

/// The gammas of all batches, and the one to take if one has to serve them all.
struct BatchSchedule {
  std::vector<PlannedStretch> stretches;
  std::optional<FixedGamma> fixed;
};

/// The verdicts of an integer batch's points, and the gammas that these bear out.
struct BatchVerdict {
  /// Speculate if some context does, do_not_speculate if all do not.
  Verdict verdict = Verdict::cannot_tell;
  /// [gamma]: true if the gamma is sure (DeploymentRow::sure) at every context that speculates; plain decoding, if
  /// some context does not speculate. Empty if no gamma is sure.
  std::vector<bool> sure = {};

  bool operator==(const BatchVerdict&) const = default;
};

/// [batch - 1]: the verdicts of the batches 1 to `up_to`, each priced at priced_at. They are looked up at the powers of
/// two and at the rule's points, and between two of these by bisection: batches between two that agree in all are
/// assumed to agree with them.
///
/// Time:     that of plan_point for each batch looked up and each context
std::vector<BatchVerdict> batch_verdicts(const DraftScan& scan, std::int64_t up_to, const DeploymentQuestion& question,
                                         const ScheduleRule& rule);

/// What the intervals of a batch say of one gamma: the verdict of its points, but cannot_tell where some context
/// speculates and this gamma is not sure there.
Verdict verdict_of(const BatchVerdict& batch, const std::optional<std::int64_t>& gamma);

/// The fewest stretches of batches 1 to `up_to` such that no batch's gamma has a regret above the tolerance, or above
/// the smallest regret of any gamma there, whichever is larger; regrets are the largest over the contexts. A stretch
/// has gamma = 0 if plain decoding is best, or if at no context the chosen gamma is 1 + min_gain times as fast, and
/// only then. Within a stretch the gamma with the smallest largest regret is taken, in a tie the smaller gamma.
/// Batches of different bases form separate stretches: a batch is not_priced if some context is (as in plan_point),
/// and extrapolated if one of the other contexts is.
///
/// At batches where some gammas are sure only these are compared, as plan_point recommends one of them alone.
///
/// If the draft states a range, the regrets are those at its two ends, in excess of the least one of the batch. If the
/// fastest gamma is the largest one compared and nobody asked for that limit, the smallest gamma that will do is taken.
///
/// The gammas are those up to the longest measured one, and beyond it those that surely gain on the best of these at
/// some context (surely_gains); the regrets are relative to the best of them, and infinite for other gammas, as for
/// those whose cost is guessed (DraftScan::is_guessed).
///
/// The fixed gamma is the one whose largest regret over all decided batches is smallest, as DraftPlan::fixed: if none
/// of these has a gamma beyond the longest measured one that surely gains, among those up to there, else with drafts
/// whose acceptance was not measured counting by the reading that says least of them; in either case among plain
/// decoding and the gammas that are sure at all batches where some gamma is, if there are such.
///
/// Time:     O(up_to contexts gammas)
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @param verdicts  from batch_verdicts(); if empty, no gamma is sure at any batch
BatchSchedule batch_schedule(const DraftScan& scan, const std::vector<double>& contexts, std::int64_t up_to,
                             const ScheduleRule& rule = {}, const std::vector<BatchVerdict>& verdicts = {});

/// The schedule's stretches, with the verdict of their gammas and divided where it changes (verdict_of).
/// @param verdicts  from batch_verdicts()
std::vector<PlannedStretch> with_verdicts(const std::vector<PlannedStretch>& stretches,
                                          const std::vector<BatchVerdict>& verdicts);

/// The batches around the crossover at which the verdict of a divided schedule (with_verdicts) changes: below it from
/// speculate, above it for good to do_not_speculate.
CrossoverBounds crossover_bounds(const std::vector<PlannedStretch>& schedule, std::int64_t crossover);

/// The first batch of the final stretches with gamma = 0 that are decided: from there on no draft gains min_gain.
/// @param extrapolate  as in DeploymentQuestion
std::optional<std::int64_t> crossover_batch(const std::vector<PlannedStretch>& schedule, bool extrapolate);

/// A point at which a schedule does not draft the recommended gamma.
struct ScheduleLoss {
  double batch = 1;
  /// The gamma of the schedule, and of the point.
  std::int64_t scheduled = 0, recommended = 0;
  /// The share of the point's speedup that the schedule loses, [0, 1].
  double regret = 0;
  /// The speedup of the point's recommended gamma.
  double speedup = 1;
};

/// The point of a plan at which its schedule loses most; empty if it has the recommended gamma at all
/// points, or faster ones. A batch
/// that is not an integer is rounded.
std::optional<ScheduleLoss> largest_schedule_loss(const DraftPlan& plan);

}  // namespace specdec::planning
