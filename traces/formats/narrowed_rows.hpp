#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "traces/position_batch.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// Rows of float64 as rows of float32. Logits are first shifted, which changes no probability, so that rounding does
/// not affect those near the largest.
/// @param from  (rows, vocab) of float64, which need not be aligned
void narrow_rows(std::span<const std::byte> from, RowSpace space, std::size_t vocab, std::vector<float>& to);

}  // namespace specdec::traces
