#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec merge`: the answer of analyze, simulate or sweep from the parts of several runs, as if one had done all.
Command merge_command();

}  // namespace specdec::cli
