#pragma once

#include <memory>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/plan_options.hpp"
#include "planner/plan.hpp"

namespace specdec::cli {

/// The answer of `specdec plan`, for commands that show it in another form.
struct PlanReport {
  Report report;
  std::shared_ptr<const planner::Plan> plan;
};

/// @throws UsageError, traces::FileError, std::domain_error
PlanReport plan_report(const PlanOptions& options);

/// The tables of its JSON output.
std::vector<CsvTable> plan_tables();

}  // namespace specdec::cli
