#pragma once

#include <cstdint>

#include "traces/position_batch.hpp"

namespace specdec::traces {

/// The positions from `start` on, `count` of them, with every column of the batch; views of the same memory.
/// Assumes 0 <= start, 0 <= count, start + count <= batch.size.
PositionBatch slice_of(const PositionBatch& batch, std::int64_t start, std::int64_t count);

/// Lets the system begin to read what whole rows of a mapped file are not in memory yet, without waiting for it: rows
/// that are worked on one after the other else wait for the disk one after the other.
void read_ahead(const PositionBatch& batch);

}  // namespace specdec::traces
