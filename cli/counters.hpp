#pragma once

#include "cli/command_line.hpp"

namespace specdec::cli {

/// `specdec counters`: what servers counted of speculative decoding, as one summary, or one reported figure in every
/// engine's convention.
Command counters_command();

}  // namespace specdec::cli
