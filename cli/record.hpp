#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec record`: a trace of texts that a transformer generates, scored by a second one.
Command record_command();

}  // namespace specdec::cli
