#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec reproduce`: the paper's printed figures, and what its formulas give.
Command reproduce_command();

}  // namespace specdec::cli
