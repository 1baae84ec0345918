#include "traces/batch_slice.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <span>

#include "traces/owned_batch.hpp"

namespace specdec::traces {
namespace {

/// Rows [start, start + count) of a column with `width` values per position; empty if it was not recorded.
template <class Value>
std::span<const Value> rows_of(std::span<const Value> column, std::int64_t start, std::int64_t count,
                               std::int64_t width) {
  if (column.empty()) return column;
  return column.subspan(static_cast<std::size_t>(start * width), static_cast<std::size_t>(count * width));
}

void cut(Rows& rows, std::int64_t start, std::int64_t count) {
  rows.bytes = rows_of(rows.bytes, start, count, rows.vocab * static_cast<std::int64_t>(size_of(rows.type)));
}

}  // namespace

PositionBatch slice_of(const PositionBatch& batch, std::int64_t start, std::int64_t count) {
  PositionBatch slice = batch;
  slice.first += start;
  slice.size = count;
  cut(slice.target_rows, start, count);
  cut(slice.draft_rows, start, count);
  each_column(slice, batch, [&](const char*, auto& to, const auto& from, std::int64_t width) {
    to = rows_of(from, start, count, std::max<std::int64_t>(width, 1));
  });
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
