#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace specdec::estimate {

/// Splits the sequences of a recording, as they come, into two halves that hold the same tasks: those of one task go to
/// the two by turns, and a task begins in the half that has fewer. Without tasks these are the sequences 0, 2, ... and
/// 1, 3, ...
class TaskHalves {
 public:
  /// The half of the next sequence: 0, which policies are chosen on, or 1, which they are judged on.
  /// @param task  -1 where it has none
  std::size_t next(std::int32_t task) {
    const auto fewer = static_cast<std::uint8_t>(sequences_[1] < sequences_[0] ? 1 : 0);
    const auto [found, is_new] = next_.try_emplace(task, fewer);
    const std::size_t half = found->second;
    found->second = static_cast<std::uint8_t>(1 - half);
    ++sequences_[half];
    return half;
  }

  /// How many sequences each half has.
  const std::array<std::int64_t, 2>& sequences() const { return sequences_; }

 private:
  std::map<std::int32_t, std::uint8_t> next_;  // by task
  std::array<std::int64_t, 2> sequences_{};
};

}  // namespace specdec::estimate
