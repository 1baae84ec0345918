#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/validation/compare.hpp"

namespace specdec::cli {

/// "results", a row for each method over all tasks, and "tasks", a row for each method and task.
nlohmann::ordered_json methods_json(const std::vector<validation::MethodResult>& results);

/// One method: its figures one below the other, then by position and by task.
std::string simulation_text(const std::vector<validation::MethodResult>& results);

/// A line for each method over all tasks, and the legend.
std::string comparison_text(const std::vector<validation::MethodResult>& results);

}  // namespace specdec::cli
