#include "sim/transformer/key_value_cache.hpp"

#include <algorithm>

#include "sim/transformer/kernels.hpp"

namespace specdec::sim {

KeyValueCache::KeyValueCache(std::size_t layers, std::size_t heads, std::size_t head_size)
    : heads_(heads), head_size_(head_size), value_stride_(round_up(head_size, line_floats)), slots_(layers * heads) {}

void KeyValueCache::reserve(std::size_t positions) {
  if (positions <= capacity_) return;
  constexpr std::size_t smallest = 256;
  const std::size_t capacity = round_up(std::max({positions, smallest, 2 * capacity_}), panel_rows);
  for (Slot& slot : slots_) {
    slot.keys.resize(capacity * head_size_);
    slot.values.resize(capacity * value_stride_);
  }
  capacity_ = capacity;
}

void KeyValueCache::store(std::size_t layer, std::size_t head, std::size_t position, const float* key,
                          const float* value) {
  Slot& slot = slots_[layer * heads_ + head];
  float* column = slot.keys.data() + position / panel_rows * panel_rows * head_size_ + position % panel_rows;
  for (std::size_t i = 0; i < head_size_; ++i) column[i * panel_rows] = key[i];
  std::copy(value, value + head_size_, slot.values.data() + position * value_stride_);
}

}  // namespace specdec::sim
