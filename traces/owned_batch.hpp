#pragma once

#include <cstdint>
#include <vector>

#include "traces/position_batch.hpp"
#include "traces/trace_columns.hpp"

namespace specdec::traces {

template <class Value>
using OwnedColumn = std::vector<Value>;

/// A batch of the scalar, the top-k or the accepted-length tier that owns its columns.
struct OwnedBatch : PositionsOf<OwnedColumn> {
  using TopKColumns = TopKOf<OwnedColumn>;

  /// The form that a TraceWriter takes; it points into this object.
  PositionBatch view() const;
  /// Goes on behind these positions, with columns that are empty.
  void clear();
};

/// The same positions without whole rows.
OwnedBatch copy_of(const PositionBatch& batch);

/// Calls `take` with the name and each of the columns that say what the positions are, of two batches, OwnedBatch or
/// PositionBatch; and with the second's number of values for each position, 0 for one without an index of its own.
template <class First, class Second, class Take>
void each_label_column(First& first, Second& second, const Take& take) {
  const auto one = [&](const char* name, auto& a, auto& b) { take(name, a, b, std::int64_t{0}); };
  one(column::seq, first.sequence, second.sequence);
  one(column::pos, first.place, second.place);
  one(column::prompt, first.prompt, second.prompt);
  one(column::step_time_ns, first.step_time_ns, second.step_time_ns);
  one(column::token, first.token, second.token);
  one(column::task, first.task, second.task);
  one(column::step_drafted, first.step_drafted, second.step_drafted);
  one(column::step_accepted, first.step_accepted, second.step_accepted);
  one(column::accepted_length, first.accepted_length, second.accepted_length);
}

/// The same of the columns of probabilities but whole rows.
template <class First, class Second, class Take>
void each_model_column(First& first, Second& second, const Take& take) {
  constexpr std::int64_t alone = 0;
  const auto each_list = [&](const column::Model& names, auto& a, auto& b, std::int64_t k_of_other) {
    take(names.topk_ids, a.ids, b.ids, b.k);
    take(names.topk_logprobs, a.logprobs, b.logprobs, b.k);
    take(names.tail_logprob, a.tail_logprob, b.tail_logprob, alone);
    take(names.at_other_topk, a.at_other, b.at_other, k_of_other);
  };
  each_list(column::target, first.target_top_k, second.target_top_k, second.draft_top_k.k);
  each_list(column::draft, first.draft_top_k, second.draft_top_k, second.target_top_k.k);
  take(column::target.token_logprob, first.target_token_logprob, second.target_token_logprob, alone);
  take(column::draft.token_logprob, first.draft_token_logprob, second.draft_token_logprob,
       second.depths == 1 ? alone : second.depths);
  take(column::overlap, first.overlap, second.overlap, alone);
  take(column::target.token_rank, first.target_token_rank, second.target_token_rank, alone);
  take(column::draft.token_rank, first.draft_token_rank, second.draft_token_rank, alone);
}

template <class First, class Second, class Take>
void each_column(First& first, Second& second, const Take& take) {
  each_label_column(first, second, take);
  each_model_column(first, second, take);
}

}  // namespace specdec::traces
