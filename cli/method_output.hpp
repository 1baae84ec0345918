#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/method_options.hpp"

namespace specdec::cli {

/// "results", a row for each method over all tasks, and "tasks", a row for each method and task; "trees", those of the
/// methods with several drafts of one position.
nlohmann::ordered_json methods_json(const MethodRuns& runs);

/// Of the tables that can be without rows, a row by the table's name, for Report::rows_of_empty.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_tables(const MethodRuns& runs);

/// One method: its figures one below the other, then by position and by task.
std::string simulation_text(const MethodRuns& runs);

/// A line for each method over all tasks, and the legend.
std::string comparison_text(const MethodRuns& runs);

}  // namespace specdec::cli
