#pragma once

#include <span>
#include <string>

#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"

namespace specdec::render {

/// As with_interval, with a drawing's sign: "1.97 ±0.04".
std::string estimate_label(const estimate::Estimate& estimate, int decimals);

/// What the intervals of a plan's points are: the "range" of several alternatives, or a "95% interval".
std::string interval_name(std::span<const planning::PointPlan> points);

}  // namespace specdec::render
