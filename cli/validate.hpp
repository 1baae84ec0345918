#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec validate`: runs Algorithm 1 on a pair of transformers and holds it against theory.
Command validate_command();

}  // namespace specdec::cli
