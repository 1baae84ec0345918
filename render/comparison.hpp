#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "planner/methods/comparison.hpp"
#include "render/spoken.hpp"

namespace specdec::render {

/// "results", a row for each method over all tasks, and "tasks", a row for each method and task; "trees", those of the
/// methods with several drafts of one position.
nlohmann::ordered_json json_of(const planner::MethodRuns& runs);

/// What the clock says of one method; null if it was not timed.
nlohmann::ordered_json timing_json(const std::optional<validation::MethodTiming>& timing);
/// v of the rounds that scored most tokens.
std::optional<double> verify_factor_of(const validation::MethodTiming& timing);
/// A speedup and how far it is from the measured one.
std::string with_error(const std::optional<double>& speedup, double measured);

/// A row of each table that may be empty, by its name, for the columns of CSV.
std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty_tables(const planner::MethodRuns& runs);

/// The fastest lossless method, and those beside it.
Spoken spoken(const planner::Comparison& comparison);

/// The speed of one method; with more its figures one below the other, by position and by task.
Spoken spoken(const planner::Simulation& simulation);

}  // namespace specdec::render
