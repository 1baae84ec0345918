#pragma once

#include "planner/plan.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Two panels over the context, a line for each draft and batch of a plan: speedup over plain decoding of the gamma
/// that the plan recommends there, with its interval, and the tokens per step of that gamma. The caption says from
/// which contexts on which draft is the fastest at the first batch. Points without a price are left out.
Chart speedup_over_context_chart(const planner::Plan& plan);

}  // namespace specdec::render
