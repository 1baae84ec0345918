#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "planner/plan.hpp"

namespace specdec::render {

/// As with_interval, with a drawing's sign: "1.97 ±0.04".
std::string estimate_label(const estimate::Estimate& estimate, int decimals);

/// What the intervals of a plan's points are: the "range" of several alternatives, or a "95% interval".
std::string interval_name(std::span<const planning::PointPlan> points);

/// "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm", as far as a target's name and a cost name them.
/// @param cost  null if there is none
std::string deployment_of(const std::string& target_model, const planner::Cost* cost);
/// With the draft that the plan shows.
std::string deployment_of(const planner::Plan& plan);

/// What a plan takes as acceptance, with the rates' interval where one is stated: "α 0.7 to 0.8".
/// @param alpha  the name of a rate
std::string acceptance_words(const planner::Acceptance& acceptance, std::string_view alpha);

}  // namespace specdec::render
