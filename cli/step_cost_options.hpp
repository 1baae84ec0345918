#pragma once

#include <optional>
#include <string>

#include "analysis/core/step_cost.hpp"
#include "cli/options.hpp"
#include "planner/cost.hpp"

namespace specdec::cli {

/// --c, --verify-factor and --overhead: what a speculative step costs, for every command that weighs costs.
struct StepCostOptions {
  std::optional<double> c;
  std::optional<std::string> verify_factor;
  std::optional<double> overhead;

  /// @param c_note  stands behind the help of --c, for instance "(required)"
  void declare(Options& options, const std::string& c_note);

  /// The times that they state, whether there is a c or not.
  /// @throws UsageError for a wrong value
  planner::StepTimes times() const;
};

}  // namespace specdec::cli
