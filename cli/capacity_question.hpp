#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
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

/// The facts of each file once: of those of the question and of those of the answer.
std::vector<nlohmann::ordered_json> file_facts_of(const AskedCapacity& asked, const planner::Capacity& capacity);

}  // namespace specdec::cli
