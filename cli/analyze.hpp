#pragma once

#include <vector>

#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "planner/recordings/analysis.hpp"

namespace specdec::cli {

/// All tables of the answer, and the answer as it is shown.
std::vector<CsvTable> tables_of_analysis();
Report report_of_analysis(const planner::Analysis& answer);

}  // namespace specdec::cli
