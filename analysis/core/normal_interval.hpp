#pragma once

#include <cmath>

namespace specdec::core {

/// The half-width of a normal variable's 95% interval in standard deviations: the 0.975 quantile.
inline constexpr double normal_half_width_95 = 1.959963984540054;

/// The half-width for the sum of two independent errors, from their half-widths: sqrt(a^2 + b^2). It does not use
/// std::hypot, which would tie a program to the glibc that it was compiled on; the squares of half-widths do not
/// overflow.
inline double half_of_both(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace specdec::core
