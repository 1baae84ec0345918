#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/synthetic.hpp"
#include "render/spoken.hpp"

/// Rendering of the answer of `specdec synthetic`.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Synthetic& synthetic);
Spoken spoken(const planner::Synthetic& synthetic);

}  // namespace specdec::render
