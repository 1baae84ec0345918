#pragma once

#include <vector>

#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "planner/parts/part_files.hpp"

namespace specdec::cli {

/// The tables of the answer, and the answer of all parts of a simulation.
std::vector<CsvTable> tables_of_simulation();
Report report_of_simulation_parts(const planner::PartSet& set);

}  // namespace specdec::cli
