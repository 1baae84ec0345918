#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "planner/sweeps/sweep.hpp"
#include "render/spoken.hpp"

/// Rendering of the answers of `specdec sweep`.
namespace specdec::render {

/// @param rows  those of Sweep::take_rows
nlohmann::ordered_json json_of(const planner::Sweep& sweep, std::vector<nlohmann::ordered_json> rows);
/// The rows that no other of the same work beats in time and cost, or the fastest where costs are unknown, and why
/// points have no price.
/// @param rows  those of Sweep::take_rows
Spoken spoken(const planner::Sweep& sweep, const std::vector<nlohmann::ordered_json>& rows);
/// A row with all columns as they are where they are not null, for tables in which some are null everywhere.
nlohmann::ordered_json row_of_every_column(const planner::Sweep& sweep);

}  // namespace specdec::render
