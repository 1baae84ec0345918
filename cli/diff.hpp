#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec diff`: two runs, or two drafts, held against each other.
Command diff_command();

}  // namespace specdec::cli
