#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specdec::sim {

// Internal header of the library; it is not installed.

struct RunningRequest {
  std::size_t request = 0;
  /// The stretch of its law that holds at its context, or one before it.
  std::size_t law = 0;
  /// Tokens in its cache, and those to come before it emits its next token; 0 if it decodes.
  std::int64_t computed = 0, prompt_left = 0;
  /// Tokens that it has emitted, and that were requested.
  std::int64_t put_out = 0, wanted = 0;
  /// Tokens that its blocks can hold.
  std::int64_t slots = 0;
  /// Positions in the current iteration.
  std::int64_t scheduled = 0;
  /// When it last emitted tokens.
  double last_output = 0;
  /// Whether its last round was.
  bool fully_accepted = false;
};

/// In order of arrival.
using RunningRequests = std::vector<RunningRequest>;

}  // namespace specdec::sim
