#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/load/capacity.hpp"
#include "render/spoken.hpp"

/// Rendering of the answer of `specdec capacity`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Capacity& capacity);
Spoken spoken(const planner::Capacity& capacity);

/// Rows of the tables of layouts, of which they have the columns where no layout was searched for.
nlohmann::ordered_json row_of_layout();
nlohmann::ordered_json row_of_layout_point();

}  // namespace specdec::render
