#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "traces/prompt_id.hpp"

namespace specdec::estimate {

/// What positions belong to. Shape: all (positions); task and prompt are empty where the recording has none.
struct PositionLabels {
  /// Equal for the positions of one text, which stand together; texts may come in any order.
  std::span<const std::int64_t> sequence;
  /// -1 where none.
  std::span<const std::int32_t> task = {};
  /// traces::no_prompt where unknown.
  std::span<const std::int64_t> prompt = {};

  std::size_t size() const { return sequence.size(); }
  std::int32_t task_of(std::size_t i) const { return task.empty() ? -1 : task[i]; }
  bool has_prompt(std::size_t i) const { return !prompt.empty() && prompt[i] != traces::no_prompt; }

  /// The key of the independent unit that a position belongs to: its prompt, or its text where the prompt is unknown.
  /// Everything that is drawn, halved or put into buckets goes by this key and so depends on no order.
  std::uint64_t cluster(std::size_t i) const {
    constexpr std::uint64_t of_prompts = 0x9e3779b97f4a7c15;
    return traces::scrambled(has_prompt(i) ? static_cast<std::uint64_t>(prompt[i]) ^ of_prompts
                                           : static_cast<std::uint64_t>(sequence[i]));
  }
  PositionLabels part(std::size_t begin, std::size_t count) const {
    const auto cut = [&](auto column) { return column.empty() ? column : column.subspan(begin, count); };
    return {cut(sequence), cut(task), cut(prompt)};
  }
};

/// Of a cluster's key: 0 or 1, each for half of them. Policies are chosen on one half and judged on the other.
constexpr std::size_t half_of(std::uint64_t cluster) { return cluster & 1U; }

}  // namespace specdec::estimate
