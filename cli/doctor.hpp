#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec doctor`: what is wrong or suspicious with files of servers, benchmarks and recorders.
Command doctor_command();

}  // namespace specdec::cli
