#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec capacity`: how much load a deployment takes, and how many GPUs a load needs.
Command capacity_command();

}  // namespace specdec::cli
