#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/plan.hpp"
#include "cli/command_line.hpp"
#include "cli/plan_deployment.hpp"
#include "cli/plan_options.hpp"

namespace specdec::cli {

/// `specdec plan`: how many tokens to draft.
Command plan_command();

/// What `specdec plan` answers, for commands that show it in another form.
struct PlanReport {
  Report report;
  /// The answer in sentences, a paragraph each, the recommendation first.
  std::vector<std::string> words;
  /// Where acceptance and --c alone are given.
  std::optional<planning::Plan> closed_form;
  /// Nothing where the one point of the closed forms cannot be computed.
  std::shared_ptr<const Deployment> deployment;
};

/// @throws UsageError, traces::FileError, std::domain_error
PlanReport plan_report(const PlanOptions& options);

/// The tables of its JSON output.
std::vector<CsvTable> plan_tables();

}  // namespace specdec::cli
