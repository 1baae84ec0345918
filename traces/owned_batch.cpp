#include "traces/owned_batch.hpp"

namespace specdec::traces {
namespace {

template <class To, class From>
void copy_sizes(To& to, const From& from) {
  to.first = from.first;
  to.size = from.size;
  to.tier = from.tier;
  to.depths = from.depths;
  to.target_top_k.k = from.target_top_k.k;
  to.draft_top_k.k = from.draft_top_k.k;
}

}  // namespace

PositionBatch OwnedBatch::view() const {
  PositionBatch batch;
  copy_sizes(batch, *this);
  each_column(batch, *this, [](const char*, auto& to, const auto& from, std::int64_t) { to = from; });
  return batch;
}

void OwnedBatch::clear() {
  first += size;
  size = 0;
  each_column(*this, *this, [](const char*, auto& column, auto&, std::int64_t) { column.clear(); });
}

OwnedBatch copy_of(const PositionBatch& batch) {
  OwnedBatch copy;
  copy_sizes(copy, batch);
  each_column(copy, batch,
              [](const char*, auto& to, const auto& from, std::int64_t) { to.assign(from.begin(), from.end()); });
  return copy;
}

}  // namespace specdec::traces
