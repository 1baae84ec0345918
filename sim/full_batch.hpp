#pragma once

#include "traces/owned_batch.hpp"

namespace specdec::sim {

/// A batch that owns its columns and whole rows of 32-bit floats, if it has any. Shape of the rows: (positions, vocab).
struct FullBatch : traces::OwnedBatch {
  traces::RowSpace space = traces::RowSpace::probabilities;
  std::int64_t vocab = 0;
  std::vector<float> target_rows, draft_rows;

  /// It points into this object.
  traces::PositionBatch view() const {
    traces::PositionBatch batch = traces::OwnedBatch::view();
    static_cast<traces::Rows&>(batch.target_rows) = rows(target_rows);
    static_cast<traces::Rows&>(batch.draft_rows) = rows(draft_rows);
    return batch;
  }

 private:
  traces::Rows rows(const std::vector<float>& values) const {
    return {space, traces::ElementType::f32, vocab, std::as_bytes(std::span(values))};
  }
};

}  // namespace specdec::sim
