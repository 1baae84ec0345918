#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/recordings/analysis.hpp"
#include "render/spoken.hpp"
#include "render/table.hpp"

/// Rendering of the answer of `specdec analyze`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Analysis& analysis);
Spoken spoken(const planner::Analysis& analysis);
/// Acceptance by task, and by lenience; without rows if the recording has none.
Table task_table(const planner::Analysis& analysis);
Table lenience_table(const planner::Analysis& analysis);

/// For the tables that can be empty, a row by the table's name: its keys are the columns.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_analysis();

}  // namespace specdec::render
