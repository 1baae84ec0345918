#pragma once

#include <cstdint>

#include "cli/command_line.hpp"

namespace specdec::cli {

/// The largest gamma that --at takes.
inline constexpr std::int64_t largest_counted_gamma = 1000;

/// `specdec counters`: what servers counted of speculative decoding, as one summary.
Command counters_command();

}  // namespace specdec::cli
