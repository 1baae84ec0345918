#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "traces/formats/safetensors.hpp"
#include "traces/position_batch.hpp"

namespace specdec::traces {

/// The extension of a trace's files.
inline constexpr const char* shard_extension = ".safetensors";

/// The tensors of a trace by name; docs/reference/formats.md defines them.
namespace column {

inline constexpr const char* seq = "seq";
inline constexpr const char* pos = "pos";
inline constexpr const char* token = "token";
inline constexpr const char* task = "task";
inline constexpr const char* prompt = "prompt";
inline constexpr const char* step_drafted = "step.drafted";
inline constexpr const char* step_accepted = "step.accepted";
inline constexpr const char* step_time_ns = "step.time_ns";
inline constexpr const char* vocab_map = "q.vocab_map";
inline constexpr const char* overlap = "overlap";
inline constexpr const char* accepted_length = "acc_len";

/// The names of one model's tensors.
struct Model {
  const char* logits;
  const char* logprobs;
  const char* probs;
  const char* topk_ids;
  const char* topk_logprobs;
  const char* tail_logprob;
  const char* at_other_topk;
  const char* token_logprob;
  const char* token_rank;
  /// A metadata key, not a tensor: Rows::sum_tolerance.
  const char* sum_tolerance;

  const char* rows(RowSpace space) const;
};
inline constexpr Model target = {"p.logits",       "p.logprobs",  "p.probs",         "p.topk_ids",   "p.topk_logprobs",
                                 "p.tail_logprob", "p.at_q_topk", "p.token_logprob", "p.token_rank", "p.sum_tolerance"};
inline constexpr Model draft = {"q.logits",       "q.logprobs",  "q.probs",         "q.topk_ids",   "q.topk_logprobs",
                                "q.tail_logprob", "q.at_p_topk", "q.token_logprob", "q.token_rank", "q.sum_tolerance"};

}  // namespace column

/// One column of a batch as stored in a file.
struct BatchColumn {
  std::string_view name;
  ElementType type = ElementType::f32;
  /// Elements of each position by dimension: the shape without the first index.
  std::vector<std::int64_t> inner_shape;
  std::span<const std::byte> bytes;

  friend bool same_layout(const BatchColumn& a, const BatchColumn& b) {
    return a.name == b.name && a.type == b.type && a.inner_shape == b.inner_shape;
  }
};

/// The columns of a batch that are not empty, one row per position, in an order in which every element is aligned.
/// Excludes draft_vocab_map.
std::vector<BatchColumn> columns_of(const PositionBatch& batch);

}  // namespace specdec::traces
