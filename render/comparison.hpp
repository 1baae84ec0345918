#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/methods/comparison.hpp"

namespace specdec::render {

/// "results", a row for each method over all tasks, and "tasks", a row for each method and task; "trees", those of the
/// methods with several drafts of one position.
nlohmann::ordered_json json_of(const planner::MethodRuns& runs);

/// A row of each table that may be empty, by its name, for the columns of CSV.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_tables(const planner::MethodRuns& runs);

/// A line for each method over all tasks, and the legend.
std::string text_of(const planner::Comparison& comparison);

/// The figures of one method one below the other, by position and by task.
std::string text_of(const planner::Simulation& simulation);

}  // namespace specdec::render
