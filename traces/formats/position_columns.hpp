#pragma once

#include <cstdint>
#include <vector>

#include "traces/owned_batch.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::traces {

/// The columns of a batch of the scalar or the top-k tier, filled by a text format sequence by sequence. Columns
/// that stay empty are not part of the batch.
class PositionColumns {
 public:
  OwnedBatch batch;

  /// Removes the positions; the next one continues their numbering.
  void clear();
  /// The labels that a sequence's positions share.
  struct Labels {
    std::int32_t task = -1;
    std::int64_t prompt = no_prompt;
  };
  /// Makes the positions after the last sequence's a sequence, read from these lines.
  void end_sequence(const Labels& labels, std::int64_t target_line, std::int64_t draft_line);
  /// The current columns, those of a tier.
  PositionBatch shown(Tier tier) const;

  std::int64_t size() const { return static_cast<std::int64_t>(batch.token.size()); }
  /// The line that a position of the batch, numbered over the whole recording, was read from.
  struct Lines {
    std::int64_t target = 0;
    std::int64_t draft = 0;
  };
  Lines lines_of(std::int64_t position) const;

 private:
  std::int64_t next_sequence_ = 0;
  std::vector<std::int64_t> begins_;  ///< beginnings of the sequences within the batch
  std::vector<Lines> lines_;          ///< lines of the sequences
  bool has_tasks_ = false;
  bool has_prompts_ = false;
};

}  // namespace specdec::traces
