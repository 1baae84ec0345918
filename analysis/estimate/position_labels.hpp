#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "traces/prompt_id.hpp"

namespace specdec::estimate {

/// The text, task and prompt of each position. Shape: all (positions); task and prompt are empty if not recorded.
struct PositionLabels {
  /// Equal for the positions of one text, which are contiguous; texts may come in any order.
  std::span<const std::int64_t> sequence;
  /// -1 for none.
  std::span<const std::int32_t> task = {};
  /// traces::no_prompt if unknown.
  std::span<const std::int64_t> prompt = {};

  std::size_t size() const { return sequence.size(); }
  std::int32_t task_of(std::size_t i) const { return task.empty() ? -1 : task[i]; }
  bool has_prompt(std::size_t i) const { return !prompt.empty() && prompt[i] != traces::no_prompt; }

  /// The key of the independent unit that a position belongs to: its prompt, or its text if the prompt is unknown.
  /// All random draws, halves and buckets are functions of this key and so do not depend on any order.
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

/// The half of a cluster, from its key: 0 or 1, about equally often. Policies are chosen on 0 and judged on 1.
constexpr std::size_t half_of(std::uint64_t cluster) { return cluster & 1U; }

}  // namespace specdec::estimate
