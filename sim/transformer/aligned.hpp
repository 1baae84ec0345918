#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace specdec::sim {

/// Rows and panels are padded to this many floats: one cache line, one AVX-512 vector.
inline constexpr std::size_t line_floats = 16;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Allocates on cache lines, so that no vector load straddles two.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{line_floats * sizeof(float)};

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) noexcept {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* pointer, std::size_t) noexcept { ::operator delete(pointer, alignment); }
  friend bool operator==(CacheLineAllocator, CacheLineAllocator) { return true; }
};

using AlignedFloats = std::vector<float, CacheLineAllocator<float>>;

}  // namespace specdec::sim
