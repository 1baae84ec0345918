#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {

/// [gamma]: the largest regret over the contexts of each gamma at one batch; empty where plain decoding has no price at
/// some context. Gammas without a price at some context are left out. Where at every context some gamma that was
/// measured loses no more than `prefer_measured`, the regrets are against the best of these, and infinite for others.
std::vector<double> worst_regrets(const DraftScan& scan, double batch, const std::vector<double>& contexts,
                                  double prefer_measured);

/// The fewest stretches of batches 1 to `up_to` such that no batch's gamma regrets more than the tolerance, or than the
/// least that some gamma regrets there, whichever is larger. Where plain decoding is best a stretch has gamma = 0, and
/// nowhere else. Within a stretch the gamma whose largest regret is least is taken, the smaller one of ties. Batches
/// without a price go with the stretch before, those at the beginning with the one after.
///
/// Time:     O(up_to contexts gammas)
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @return empty where no batch has a price
std::vector<ScheduleStretch> batch_schedule(const DraftScan& scan, const std::vector<double>& contexts,
                                            std::int64_t up_to, double tolerance,
                                            double prefer_measured = measured_preference);

/// The first batch of a last stretch of gamma = 0.
std::optional<std::int64_t> crossover_batch(const std::vector<ScheduleStretch>& schedule);

}  // namespace specdec::planning
