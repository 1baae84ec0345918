#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/capacity_answer.hpp"
#include "cli/capacity_options.hpp"
#include "cli/report.hpp"

/// From the options of `specdec capacity` to the question that the simulation answers, for the command and for the
/// figures that go over loads.
namespace specdec::cli {

/// What the options and files add up to, before it is simulated.
struct CapacityInputs {
  std::vector<std::string> files;
  std::vector<nlohmann::ordered_json> presets;
  std::vector<Assumption> assumptions;
  std::vector<Warning> warnings;
};

/// Everything of a report but its range, which is the answer. With --concurrency the load is simulated here.
/// @param o  outlives the report, which refers to it
/// @throws UsageError, traces::FileError
CapacityReport asked_capacity(const CapacityOptions& o, CapacityInputs& inputs);

/// Of each file once.
std::vector<nlohmann::ordered_json> file_facts_of(const CapacityInputs& inputs);

}  // namespace specdec::cli
