#pragma once

#include <vector>

#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "planner/recordings/analysis.hpp"
#include "planner/recordings/team.hpp"

namespace specdec::cli {

/// `specdec analyze`: what a recording says of acceptance, of gamma and of other ways to draft.
/// @param team  the team that this process belongs to; null for one that reads all by itself
Command analyze_command(planner::Team* team = nullptr);

/// All tables of the answer, and the answer as it is shown.
std::vector<CsvTable> tables_of_analysis();
Report report_of_analysis(planner::Analysis answer);

}  // namespace specdec::cli
