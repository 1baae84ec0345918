#pragma once

#include <cstddef>
#include <vector>

namespace specdec::sim {

/// Rows and panels are padded to this many floats: one cache line, one AVX-512 vector.
inline constexpr std::size_t line_floats = 16;
inline constexpr std::size_t line_bytes = line_floats * sizeof(float);

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Memory that starts on a cache line; large allocations use huge pages if the system has them, which saves a product
/// that streams through all the weights a sixth of its time.
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* memory, std::size_t bytes) noexcept;

template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) noexcept {}

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_aligned(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n) noexcept { free_aligned(memory, n * sizeof(T)); }
  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

using AlignedFloats = std::vector<float, AlignedAllocator<float>>;
using AlignedBytes = std::vector<std::byte, AlignedAllocator<std::byte>>;

}  // namespace specdec::sim
