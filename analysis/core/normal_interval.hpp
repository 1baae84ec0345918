#pragma once

#include <cmath>

namespace specdec::core {

/// Half of a 95% interval of a normal variable, in its standard deviations: the quantile of 0.975.
inline constexpr double normal_half_width_95 = 1.959963984540054;

/// Half of the interval of what two independent errors add up to, by the halves of theirs: sqrt(a^2 + b^2). Not by
/// std::hypot, for which a program needs the glibc that it was compiled on; halves are no numbers whose squares
/// overflow.
inline double half_of_both(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace specdec::core
