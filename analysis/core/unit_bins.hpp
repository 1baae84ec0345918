#pragma once

#include <algorithm>
#include <cstddef>

namespace specdec::core {

/// The index of the equal bin of [0, 1] that holds a number: floor(value bins); 1 itself belongs to the last bin.
/// @param value  [0, 1]; values beyond the ends by rounding are clamped. Not NaN
/// @param bins   >= 1
inline std::size_t unit_bin(double value, std::size_t bins) {
  return std::min(static_cast<std::size_t>(std::clamp(value, 0.0, 1.0) * static_cast<double>(bins)), bins - 1);
}

}  // namespace specdec::core
