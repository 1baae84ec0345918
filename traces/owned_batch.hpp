#pragma once

#include <cstdint>
#include <vector>

#include "traces/position_batch.hpp"

namespace specdec::traces {

/// A batch of the scalar, the top-k or the accepted-length tier that owns its columns.
struct OwnedBatch {
  std::int64_t first = 0;
  std::int64_t size = 0;
  Tier tier = Tier::scalar;
  std::vector<std::int64_t> sequence, place, prompt;
  std::vector<std::int32_t> token, task;

  struct TopKColumns {
    std::int64_t k = 0;
    std::vector<std::int32_t> ids;
    std::vector<float> logprobs, tail_logprob, at_other;
  };
  TopKColumns target_top_k, draft_top_k;

  std::vector<float> target_token_logprob, draft_token_logprob, overlap;
  std::int64_t depths = 1;
  std::vector<std::int32_t> target_token_rank, draft_token_rank;
  std::vector<std::int32_t> step_drafted, step_accepted, accepted_length;
  std::vector<std::int64_t> step_time_ns;

  /// The form that a TraceWriter takes; it points into this object.
  PositionBatch view() const;
  /// Goes on behind these positions, with columns that are empty.
  void clear();
};

/// The same positions without whole rows.
OwnedBatch copy_of(const PositionBatch& batch);

/// Calls `take` with each column but whole rows of two batches, OwnedBatch or PositionBatch, and with the second's
/// number of values for each position.
template <class First, class Second, class Take>
void each_column(First& first, Second& second, const Take& take) {
  const auto each_list = [&](auto& a, auto& b, std::int64_t k_of_other) {
    take(a.ids, b.ids, b.k);
    take(a.logprobs, b.logprobs, b.k);
    take(a.tail_logprob, b.tail_logprob, std::int64_t{1});
    take(a.at_other, b.at_other, k_of_other);
  };
  each_list(first.target_top_k, second.target_top_k, second.draft_top_k.k);
  each_list(first.draft_top_k, second.draft_top_k, second.target_top_k.k);
  take(first.draft_token_logprob, second.draft_token_logprob, second.depths);
  const auto one = [&](auto& a, auto& b) { take(a, b, std::int64_t{1}); };
  one(first.sequence, second.sequence);
  one(first.place, second.place);
  one(first.prompt, second.prompt);
  one(first.token, second.token);
  one(first.task, second.task);
  one(first.target_token_logprob, second.target_token_logprob);
  one(first.overlap, second.overlap);
  one(first.target_token_rank, second.target_token_rank);
  one(first.draft_token_rank, second.draft_token_rank);
  one(first.step_drafted, second.step_drafted);
  one(first.step_accepted, second.step_accepted);
  one(first.step_time_ns, second.step_time_ns);
  one(first.accepted_length, second.accepted_length);
}

}  // namespace specdec::traces
