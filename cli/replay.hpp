#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec replay`: one simulated run over a recording, next to the exact law.
Command replay_command();

}  // namespace specdec::cli
