#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec list hardware` and `list models`: the presets that --hardware and --model take, with their figures and the
/// pages that print them.
Command list_hardware_command();
Command list_models_command();
/// The acceptance rates that --published takes, with what was measured beside them.
Command list_published_command();

}  // namespace specdec::cli
