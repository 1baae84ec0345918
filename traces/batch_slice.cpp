#include "traces/batch_slice.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <span>

namespace specdec::traces {
namespace {

/// Rows [start, start + count) of a column with `width` values per position; empty if it was not recorded.
template <class Value>
std::span<const Value> rows_of(std::span<const Value> column, std::int64_t start, std::int64_t count,
                               std::int64_t width = 1) {
  if (column.empty()) return column;
  return column.subspan(static_cast<std::size_t>(start * width), static_cast<std::size_t>(count * width));
}

void cut(Rows& rows, std::int64_t start, std::int64_t count) {
  rows.bytes = rows_of(rows.bytes, start, count, rows.vocab * static_cast<std::int64_t>(size_of(rows.type)));
}

void cut(TopK& top_k, std::int64_t k_of_other, std::int64_t start, std::int64_t count) {
  top_k.ids = rows_of(top_k.ids, start, count, top_k.k);
  top_k.logprobs = rows_of(top_k.logprobs, start, count, top_k.k);
  top_k.tail_logprob = rows_of(top_k.tail_logprob, start, count);
  top_k.at_other = rows_of(top_k.at_other, start, count, k_of_other);
}

}  // namespace

PositionBatch slice_of(const PositionBatch& batch, std::int64_t start, std::int64_t count) {
  PositionBatch slice = batch;
  slice.first += start;
  slice.size = count;
  const auto cut_column = [&](auto& column, std::int64_t width = 1) { column = rows_of(column, start, count, width); };
  cut_column(slice.sequence);
  cut_column(slice.place);
  cut_column(slice.token);
  cut_column(slice.task);
  cut_column(slice.prompt);
  cut(slice.target_rows, start, count);
  cut(slice.draft_rows, start, count);
  cut(slice.target_top_k, batch.draft_top_k.k, start, count);
  cut(slice.draft_top_k, batch.target_top_k.k, start, count);
  cut_column(slice.target_token_logprob);
  cut_column(slice.draft_token_logprob, batch.depths);
  cut_column(slice.overlap);
  cut_column(slice.target_token_rank);
  cut_column(slice.draft_token_rank);
  cut_column(slice.step_drafted);
  cut_column(slice.step_accepted);
  cut_column(slice.step_time_ns);
  cut_column(slice.accepted_length);
  return slice;
}

void read_ahead(const PositionBatch& batch) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const std::span<const std::byte> rows : {batch.target_rows.bytes, batch.draft_rows.bytes}) {
    if (rows.empty()) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(rows.data());
    const std::uintptr_t within_page = address % page;
    ::madvise(reinterpret_cast<void*>(address - within_page), rows.size() + within_page, MADV_WILLNEED);
  }
}

}  // namespace specdec::traces
