#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec plan`: how many tokens to draft.
Command plan_command();

}  // namespace specdec::cli
