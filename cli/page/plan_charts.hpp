#pragma once

#include <vector>

#include "cli/figures/chart.hpp"
#include "cli/plan.hpp"

namespace specdec::cli {

/// What a plan says, as figures: speedup against gamma; regret over the acceptance's interval; over several batches
/// speedup and, where the cost knows seconds, time per token; over several drafts their speedups. As many as the plan
/// holds data for.
std::vector<Chart> plan_charts(const PlanReport& plan);

}  // namespace specdec::cli
