#pragma once

#include <string>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "cli/step_cost_options.hpp"
#include "planner/methods/comparison.hpp"

namespace specdec::cli {

/// The options of `simulate` and `compare`: what is continued, the parameters of the methods, and what steps cost.
struct MethodOptions {
  std::string source = "pair";
  std::string tree = "2x3";
  /// What is given as it stands; those that have a default in the help are in `settings`.
  planner::MethodQuestion question;
  validation::MethodSettings settings;
  StepCostOptions cost;

  MethodOptions();
  void declare_source(Options& options);
  void declare_settings(Options& options);

  /// What the user gave; `given` is where the options were declared.
  /// @throws UsageError
  planner::MethodQuestion asked(const Options& given) const;
};

/// The results of the methods.
Report report_of(const planner::MethodRuns& runs, render::Spoken spoken);

}  // namespace specdec::cli
