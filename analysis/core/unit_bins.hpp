#pragma once

#include <algorithm>
#include <cstddef>

namespace specdec::core {

/// Which of equal bins of [0, 1] a number belongs to: floor(value bins), and 1 itself to the last one.
/// @param value  [0, 1]; rounding beyond the ends is brought back. Not NaN
/// @param bins   >= 1
inline std::size_t unit_bin(double value, std::size_t bins) {
  return std::min(static_cast<std::size_t>(std::clamp(value, 0.0, 1.0) * static_cast<double>(bins)), bins - 1);
}

}  // namespace specdec::core
