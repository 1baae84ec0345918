#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec compare`: runs several methods on the same source with the same random numbers, one line for each.
Command compare_command();

}  // namespace specdec::cli
