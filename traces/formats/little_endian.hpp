#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace specdec::traces {

static_assert(std::endian::native == std::endian::little, "the formats read here are little-endian");

/// The little-endian number at `from`, which need not be aligned.
template <class T>
T load(const std::byte* from) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace specdec::traces
