#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "planner/load/capacity.hpp"

/// Rendering of the answer of `specdec capacity`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Capacity& capacity);
std::string text_of(const planner::Capacity& capacity);

}  // namespace specdec::render
