#pragma once

#include <vector>

#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "cli/sweep_points.hpp"
#include "planner/sweeps/sweep.hpp"

namespace specdec::cli {

/// The table of the answer, and the answer as it is shown.
std::vector<CsvTable> tables_of_sweep();
Report report_of_sweep(planner::Sweep sweep);

}  // namespace specdec::cli
