#pragma once

#include <cstddef>
#include <vector>

#include "sim/transformer/config.hpp"

namespace specdec::sim {

/// Rotary position embedding, split-half: the pair (x[i], x[i + head_size/2]) turns by position * frequency(i).
/// Frequencies and angles are f32, as models are trained with.
class RotaryPositions {
 public:
  explicit RotaryPositions(const TransformerConfig& config);

  /// Computes the angles of positions [0, positions).
  void reserve(std::size_t positions);
  /// Rotates `heads` consecutive heads at x. `position` must be below the reserved number.
  void rotate(std::size_t position, std::size_t heads, float* x) const;

 private:
  std::vector<float> frequencies_;
  /// Shape: (positions, head_size/2).
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

}  // namespace specdec::sim
