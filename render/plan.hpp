#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "planner/plan.hpp"
#include "render/spoken.hpp"

/// Rendering of the answer of `specdec plan`: its decision first.
namespace specdec::render {

nlohmann::ordered_json json_of(const planner::Plan& plan);
/// The decision, a table of at most six rows, the configuration if one is asked for, and the next command; with more
/// every point, every gamma and every run behind it.
Spoken spoken(const planner::Plan& plan);

/// Fills in the keys of the JSON output.
void put_plan(const planner::Plan& plan, nlohmann::ordered_json& json);

/// For the tables of benchmark runs, which most plans lack, a row by the table's name: its keys are the columns.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_runs();

/// True for a draft that is passed over because no server, or not the one asked for, starts with it.
bool is_passed_over(const planner::Plan& plan, std::size_t draft);
/// "1.31 to 1.53"; "-" for an interval without width.
std::string speedup_range(const std::optional<estimate::Interval>& interval);

/// How to give the times of the next run to a plan by hardware; empty if there is none to give.
std::string calibration_text(const planner::Plan& plan);
/// Instructions to read times off a run by the engine's own benchmark, and to give them to a plan by hardware.
std::string calibration_text(planning::Engine engine, const planning::NextMeasurement& next);

}  // namespace specdec::render
