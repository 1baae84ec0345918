#include "analysis/core/checks.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace specdec::core {

void refuse_out_of(std::string_view function, std::string_view name, double value, double lo, double hi) {
  const std::string range = hi == infinity ? fmt::format("[{}, inf)", lo) : fmt::format("[{}, {}]", lo, hi);
  throw std::domain_error(fmt::format("{}: {} is {}, but must be in {}", function, name, value, range));
}

void refuse_out_of(std::string_view function, std::string_view name, std::int64_t value, std::int64_t lo,
                   std::int64_t hi) {
  const std::string range =
      hi == std::numeric_limits<std::int64_t>::max() ? fmt::format("[{}, 2^63)", lo) : fmt::format("[{}, {}]", lo, hi);
  throw std::domain_error(fmt::format("{}: {} is {}, but must be in {}", function, name, value, range));
}

void require_same_size(std::string_view function, std::string_view a, std::size_t size_a, std::string_view b,
                       std::size_t size_b) {
  if (size_a == size_b) return;
  throw std::invalid_argument(fmt::format("{}: {} has {} entries, but {} has {}", function, a, size_a, b, size_b));
}

}  // namespace specdec::core
