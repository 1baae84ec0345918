#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "planner/synthetic.hpp"

/// Rendering of the answer of `specdec synthetic`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Synthetic& synthetic);
std::string text_of(const planner::Synthetic& synthetic);

}  // namespace specdec::render
