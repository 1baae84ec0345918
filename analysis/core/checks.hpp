#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace specdec::core {

/// Bounds for values that need only be finite, positive or countable, and the values beyond them.
inline constexpr double largest_double = std::numeric_limits<double>::max();
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double least_positive = std::numeric_limits<double>::denorm_min();
inline constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

/// Throw what require_in says.
[[noreturn]] void refuse_out_of(std::string_view function, std::string_view name, double value, double lo, double hi);
[[noreturn]] void refuse_out_of(std::string_view function, std::string_view name, std::int64_t value, std::int64_t lo,
                                std::int64_t hi);

/// Throws std::domain_error `function: name is value, but must be in [lo, hi]` unless lo <= value <= hi.
/// NaN fails. Infinite bounds are printed as an open end.
inline void require_in(std::string_view function, std::string_view name, double value, double lo, double hi) {
  if (!(lo <= value && value <= hi)) refuse_out_of(function, name, value, lo, hi);
}

/// The same for integers.
inline void require_in(std::string_view function, std::string_view name, std::int64_t value, std::int64_t lo,
                       std::int64_t hi) {
  if (!(lo <= value && value <= hi)) refuse_out_of(function, name, value, lo, hi);
}

/// Throws std::invalid_argument `function: a has N entries, but b has M` unless the two sizes agree.
void require_same_size(std::string_view function, std::string_view a, std::size_t size_a, std::string_view b,
                       std::size_t size_b);

}  // namespace specdec::core
