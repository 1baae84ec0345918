#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec simulate`: runs one draft, verifier and policy on a pair of models and prints what became of it.
Command simulate_command();

}  // namespace specdec::cli
