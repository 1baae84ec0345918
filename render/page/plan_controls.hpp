#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "analysis/planning/trace_analysis.hpp"
#include "planner/plan.hpp"

namespace specdec::render {

/// First values of the controls of the interactive page: the acceptance and the cost that the plan rests on, so that
/// the page's first answer is the plan's at its first batch and context.
///
///   "about"        a sentence for people: what the first values are
///   "acceptance"   null, or what the plan rests on that is no one rate: {"label", "words", "question"}, the latter two
///                  parts of a planner::PlanRequest
///   "alpha_low", "alpha_high"   one rate, or its interval
///   "cost"         "c" or "hardware"; "c", "hardware", "model", ... the first values of the controls
///   "question"     what every request asks beside the controls
///   "with_c", "with_hardware"   {"cost", "question"}: what requests by that cost say beside them
///   "specs"        of the user's own files, as planner::known_json writes them
///   "batches"      of the plan
///   "lenience"     [{"lenience", "alpha", "interval"}], what each does to the rate, where a recording says it
///
/// @param lenience  the estimates of the acceptance's recording; empty if there is none, or it does not say it
nlohmann::ordered_json plan_controls(const planner::Plan& plan, std::span<const planning::LenienceEstimate> lenience);

}  // namespace specdec::render
