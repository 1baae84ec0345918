#pragma once

#include "planner/methods/comparison.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Results of methods: tokens per step with their closed form, and the speedup where costs are known, a bar for
/// each method; for a single method a bar for each task and for all of them, and the share of drafts that stay, by
/// position.
/// @param runs  those of one method at least
Chart methods_chart(const planner::MethodRuns& runs);

}  // namespace specdec::render
