#pragma once

#include "cli/plan_options.hpp"
#include "planner/acceptance.hpp"

namespace specdec::cli {

/// What the options --alpha, --rejection, --acceptance-length, --acceptance-per-position and --published say.
/// @throws UsageError for a wrong value
planner::Acceptance stated_acceptance(const PlanOptions& o);

/// What --acceptance says; empty where that is what the files say.
planner::Acceptance::Rule rule_of(const PlanOptions& o);

}  // namespace specdec::cli
