#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/given_options.hpp"
#include "cli/options.hpp"
#include "planner/cost.hpp"
#include "planner/sweeps/shared_costs.hpp"

namespace specdec::cli {

/// --hardware and what goes with it: a cost from what models read and compute and what hardware can do, for every
/// command that prices rounds so. The models' names are the command's own options.
struct RooflineArguments {
  std::optional<std::string> hardware;
  /// All but --calibrate, whose texts are read with the question.
  planner::HardwareOptions options;
  std::vector<std::string> calibrate;
  /// Costs shared by many questions that are asked at once; null if there is only one.
  std::shared_ptr<planner::SharedCosts> shared_costs;
};

/// Declares them under headings of their own.
void declare(Options& options, RooflineArguments& a);

/// Which of them are given beside --hardware, by name, for commands that refuse them without it.
GivenOptions given_beside_hardware(const RooflineArguments& a);

/// The hardware options that they state.
/// @throws UsageError for a wrong value
planner::HardwareOptions hardware_options(const RooflineArguments& a);

}  // namespace specdec::cli
