#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/difference.hpp"
#include "render/spoken.hpp"

/// Rendering of the answer of `specdec diff`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::RunsDifference& answer);
Spoken spoken(const planner::RunsDifference& answer);

/// A row for each table that can be without rows, by the table's name: its keys are the columns.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_difference();

}  // namespace specdec::render
