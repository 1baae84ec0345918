#pragma once

#include "cli/plan_options.hpp"
#include "planner/acceptance.hpp"

namespace specdec::cli {

/// The acceptance stated by --alpha, --rejection, --acceptance-length, --acceptance-rate, --acceptance-per-position
/// and --published.
/// @throws UsageError for a wrong value
planner::Acceptance stated_acceptance(const PlanOptions& o);

/// The rule that --acceptance names; empty if it is the one that the files name.
planner::Acceptance::Rule rule_of(const PlanOptions& o);

}  // namespace specdec::cli
