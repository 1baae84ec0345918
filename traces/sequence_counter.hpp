#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/position_source.hpp"

namespace specdec::traces {

/// Numbers sequences 0, 1, 2, ... and the places within them, from a trace's seq and pos: a sequence is a
/// run of equal seq over which pos rises by one.
class SequenceCounter {
 public:
  /// The next position begins a sequence whatever its seq and pos are.
  void break_here() { broken_ = true; }

  /// `seq` and `pos` may be empty.
  void number(std::span<const std::int64_t> seq, std::span<const std::int64_t> pos, std::span<std::int64_t> sequence,
              std::span<std::int64_t> place);

  /// Adds notes on places at which the order of positions looks unintended.
  void add_notes(std::vector<Note>& notes) const;

 private:
  std::int64_t sequence_ = -1;
  std::int64_t place_ = -1;
  std::int64_t seq_ = 0;
  std::int64_t pos_ = 0;
  bool broken_ = true;
  std::int64_t jumps_ = 0;
  std::int64_t returns_ = 0;
};

}  // namespace specdec::traces
