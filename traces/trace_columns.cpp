#include "traces/trace_columns.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace specdec::traces {
namespace {

template <class T>
constexpr ElementType type_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementType::i32;
  return ElementType::i64;
}

/// Collects the columns that are present.
class Collector {
 public:
  template <class T>
  void add(std::string_view name, std::span<const T> values, std::vector<std::int64_t> inner_shape = {}) {
    if (values.empty()) return;
    columns_.push_back({name, type_of<T>(), std::move(inner_shape), std::as_bytes(values)});
  }

  void add(const column::Model& model, const Rows& rows) {
    if (rows.empty()) return;
    columns_.push_back({model.rows(rows.space), rows.type, {rows.vocab}, rows.bytes});
  }

  void add(const column::Model& model, const TopK& top, std::int64_t k_of_other) {
    if (top.empty()) return;
    add(model.topk_ids, top.ids, {top.k});
    add(model.topk_logprobs, top.logprobs, {top.k});
    add(model.tail_logprob, top.tail_logprob);
    add(model.at_other_topk, top.at_other, {k_of_other});
  }

  std::vector<BatchColumn> sorted() && {
    std::stable_sort(columns_.begin(), columns_.end(),
                     [](const BatchColumn& a, const BatchColumn& b) { return size_of(a.type) > size_of(b.type); });
    return std::move(columns_);
  }

 private:
  std::vector<BatchColumn> columns_;
};

}  // namespace

const char* column::Model::rows(RowSpace space) const {
  switch (space) {
    case RowSpace::logits:
      return logits;
    case RowSpace::log_probabilities:
      return logprobs;
    case RowSpace::probabilities:
      break;
  }
  return probs;
}

std::vector<BatchColumn> columns_of(const PositionBatch& batch) {
  Collector columns;
  columns.add(column::seq, batch.sequence);
  columns.add(column::pos, batch.place);
  columns.add(column::prompt, batch.prompt);
  columns.add(column::step_time_ns, batch.step_time_ns);
  columns.add(column::token, batch.token);
  columns.add(column::task, batch.task);
  columns.add(column::step_drafted, batch.step_drafted);
  columns.add(column::step_accepted, batch.step_accepted);
  columns.add(column::accepted_length, batch.accepted_length);
  columns.add(column::target, batch.target_rows);
  columns.add(column::draft, batch.draft_rows);
  columns.add(column::target, batch.target_top_k, batch.draft_top_k.k);
  columns.add(column::draft, batch.draft_top_k, batch.target_top_k.k);
  columns.add(column::target.token_logprob, batch.target_token_logprob);
  columns.add(column::draft.token_logprob, batch.draft_token_logprob,
              batch.depths == 1 ? std::vector<std::int64_t>{} : std::vector{batch.depths});
  columns.add(column::overlap, batch.overlap);
  columns.add(column::target.token_rank, batch.target_token_rank);
  columns.add(column::draft.token_rank, batch.draft_token_rank);
  return std::move(columns).sorted();
}

}  // namespace specdec::traces
