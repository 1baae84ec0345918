#pragma once

#include "planner/sweeps/sweep.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Cost against time per token of the points of a sweep, and the line of those that no other of the same work beats in
/// both.
/// @throws planner::QuestionError if no point has a time and a cost, or there are more kinds of work than lines can show
Chart pareto_chart(const planner::Sweep& sweep);

}  // namespace specdec::render
