#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/capacity_options.hpp"
#include "planner/load/capacity.hpp"

namespace specdec::cli {

/// The question that the options of `specdec capacity` ask, for the command and for the figures that go over loads.
struct AskedCapacity {
  std::optional<planner::Acceptance> acceptance;
  planner::Cost cost;
  planner::CapacityQuestion question;
  /// The files that --requests names.
  std::vector<std::string> files;
};

/// @throws UsageError, traces::FileError
AskedCapacity asked_capacity(const CapacityOptions& o);

/// The files of the question and of the answer.
std::vector<std::string> files_of(const AskedCapacity& asked, const planner::Capacity& capacity);

}  // namespace specdec::cli
