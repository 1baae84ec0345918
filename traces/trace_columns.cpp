#include "traces/trace_columns.hpp"

#include <algorithm>
#include <utility>

#include "traces/owned_batch.hpp"

namespace specdec::traces {
namespace {

constexpr ElementType type_of(std::span<const float>) { return ElementType::f32; }
constexpr ElementType type_of(std::span<const std::int32_t>) { return ElementType::i32; }
constexpr ElementType type_of(std::span<const std::int64_t>) { return ElementType::i64; }

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
  std::vector<BatchColumn> columns;
  const auto add = [&](const char* name, const auto& values, const auto&, std::int64_t width) {
    if (values.empty()) return;
    std::vector<std::int64_t> inner_shape(width > 0 ? 1 : 0, width);
    columns.push_back({name, type_of(values), std::move(inner_shape), std::as_bytes(values)});
  };
  const auto add_rows = [&](const column::Model& model, const Rows& rows) {
    if (!rows.empty()) columns.push_back({model.rows(rows.space), rows.type, {rows.vocab}, rows.bytes});
  };
  each_label_column(batch, batch, add);
  add_rows(column::target, batch.target_rows);
  add_rows(column::draft, batch.draft_rows);
  each_model_column(batch, batch, add);
  std::stable_sort(columns.begin(), columns.end(),
                   [](const BatchColumn& a, const BatchColumn& b) { return size_of(a.type) > size_of(b.type); });
  return columns;
}

}  // namespace specdec::traces
