#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec synthetic`: the settings that make engines accept as recordings, counters or a rate say.
Command synthetic_command();

}  // namespace specdec::cli
