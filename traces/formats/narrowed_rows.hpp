#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/position_batch.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// Rows of float64 as rows of float32. Logits are first shifted, which changes no probability, so that rounding does
/// not affect those near the largest.
/// @param from  (rows, vocab) of float64, which need not be aligned
void narrow_rows(std::span<const std::byte> from, RowSpace space, std::size_t vocab, std::vector<float>& to);

/// Shows rows of F64, F32, F16 or BF16 as a batch has them: those of F64 narrowed, in `narrowed`.
void show_rows(std::span<const std::byte> bytes, ElementType type, RowSpace space, std::int64_t vocab,
               std::vector<float>& narrowed, Rows& rows);

/// A number of one of these types. @param from  its bytes
double number_at(ElementType type, const std::byte* from);

}  // namespace specdec::traces
