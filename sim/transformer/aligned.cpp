#include "sim/transformer/aligned.hpp"

#include <sys/mman.h>

#include <new>

namespace specdec::sim {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20U;

std::align_val_t alignment_for(std::size_t bytes) {
  return std::align_val_t{bytes >= huge_page ? huge_page : line_floats * sizeof(float)};
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_for(bytes));
#ifdef MADV_HUGEPAGE
  // Advice only: without huge pages the memory works as it is.
  if (bytes >= huge_page) ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_aligned(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment_for(bytes)); }

}  // namespace specdec::sim
