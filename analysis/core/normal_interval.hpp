#pragma once

namespace specdec::core {

/// Half of a 95% interval of a normal variable, in its standard deviations: the quantile of 0.975.
inline constexpr double normal_half_width_95 = 1.959963984540054;

}  // namespace specdec::core
