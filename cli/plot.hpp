#pragma once

#include <vector>

#include "cli/command_line.hpp"

namespace specdec::cli {

/// The group's own command, which lists and draws all figures, and one for each figure.
std::vector<Command> plot_commands();

}  // namespace specdec::cli
