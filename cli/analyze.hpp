#pragma once

#include "cli/command_line.hpp"
#include "planner/recordings/team.hpp"

namespace specdec::cli {

/// `specdec analyze`: what a recording says of acceptance, of gamma and of other ways to draft.
/// @param team  of which this process is one; null for one that reads all by itself
Command analyze_command(planner::Team* team = nullptr);

/// `specdec merge`: the answer of analyze from the parts of several runs, as if one had read all.
Command merge_command();

}  // namespace specdec::cli
