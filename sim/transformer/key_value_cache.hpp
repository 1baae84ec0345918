#pragma once

#include <cstddef>
#include <vector>

#include "sim/transformer/aligned.hpp"

namespace specdec::sim {

/// Keys and values of every layer and head, in the layouts that attend() reads; room for positions grows on demand.
class KeyValueCache {
 public:
  KeyValueCache(std::size_t layers, std::size_t heads, std::size_t head_size);

  /// Makes room for positions [0, positions); stored data are kept.
  void reserve(std::size_t positions);
  /// Stores head_size floats each. `position` must be below the reserved number.
  void store(std::size_t layer, std::size_t head, std::size_t position, const float* key, const float* value);

  const float* keys(std::size_t layer, std::size_t head) const { return slots_[layer * heads_ + head].keys.data(); }
  const float* values(std::size_t layer, std::size_t head) const { return slots_[layer * heads_ + head].values.data(); }
  /// Floats from one position's values to the next's, a multiple of 16.
  std::size_t value_stride() const { return value_stride_; }

 private:
  struct Slot {
    AlignedFloats keys;
    AlignedFloats values;
  };

  std::size_t heads_;
  std::size_t head_size_;
  std::size_t value_stride_;
  std::size_t capacity_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace specdec::sim
