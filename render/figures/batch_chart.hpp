#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Speedup and throughput over the batches of a plan. Two panels: speedup over plain decoding with the batch at which
/// it falls below 1 + min_gain, and output tokens per second of all sequences beside those of plain decoding; one panel
/// if times are not seconds.
/// @param gammas   shown beside the best one of each batch, each >= 1
/// @param context  of the points to show; if empty, all of them
Chart speedup_over_batch_chart(const planner::Plan& plan, const std::vector<std::int64_t>& gammas,
                               std::optional<double> context = {});

}  // namespace specdec::render
