#pragma once

#include <nlohmann/json.hpp>

#include "cli/plan.hpp"

namespace specdec::cli {

/// What the controls of the interactive page begin with: the acceptance and the cost that the report rests on, so that
/// the page's first answer is the report's at its first batch and context.
///
///   "about"        a sentence for people: what the first values are
///   "acceptance"   null, or what the report measured: {"label", "request"}; the request's keys are those of the
///                  page's planner (web/planner.cpp)
///   "alpha_low", "alpha_high"   one rate, or its interval
///   "cost"         "c" or "hardware"; "c", "hardware", "model", ... the first values of the controls
///   "options", "c_options", "hardware_options"   what every request has beside the controls, and those of one cost
///   "specs"        of the user's own files (page_input)
///   "batches"      of the report
///   "lenience"     [{"lenience", "alpha", "interval"}], what each does to the rate, where a recording says it
///
/// @param inputs    "inputs" of the report's JSON output
/// @param analysis  of `specdec analyze --format json`; null without a recording
nlohmann::ordered_json planner_start(const PlanOptions& o, const PlanReport& plan, const nlohmann::ordered_json& inputs,
                                     const nlohmann::ordered_json& analysis);

}  // namespace specdec::cli
