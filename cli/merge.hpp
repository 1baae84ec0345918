#pragma once

#include "cli/command_line.hpp"
#include "cli/shard_options.hpp"

namespace specdec::cli {

/// `specdec merge`: the answer of analyze, simulate or sweep from the parts of several runs, as if one had done all.
Command merge_command();

/// The answer from the parts of a team's shares; one that is not told on all processes but the first.
Report report_of_team(ShareTeam& team);

}  // namespace specdec::cli
