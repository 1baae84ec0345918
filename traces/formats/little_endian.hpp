#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

/// The little-endian integer of so many bytes, 1 to 8; one beyond 2^63 - 1 is taken for that.
inline std::int64_t load_integer(const std::byte* from, std::int64_t bytes, bool is_signed) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(bytes));
  const std::int64_t unused = 64 - 8 * bytes;
  if (is_signed) return static_cast<std::int64_t>(bits << unused) >> unused;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(bits, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace specdec::traces
