#pragma once

#include <vector>

#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "cli/shard_options.hpp"
#include "planner/parts/part_files.hpp"

namespace specdec::cli {

/// `specdec simulate`: runs one draft, verifier and policy on a pair of models and prints what became of it.
/// @param team  the team that this process shares the work with; null for none
Command simulate_command(ShareTeam* team = nullptr);

/// The tables of the answer, and the answer of all parts of a simulation.
std::vector<CsvTable> tables_of_simulation();
Report report_of_simulation_parts(const planner::PartSet& set);

}  // namespace specdec::cli
