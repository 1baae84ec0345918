#pragma once

#include <span>
#include <vector>

namespace specdec::core {

/// The quantile of sorted values, linear between neighbours:
///
///   x_i + (h - i) (x_(i+1) - x_i),   h = share (n - 1),   i = floor(h),   values counted from 0
///
/// Source:   Hyndman and Fan 1996, definition 7
/// @param sorted  at least one value, in nondecreasing order
/// @param share   the fraction of the values that lie below, [0, 1]; 1/2 gives the median
/// @throws std::invalid_argument if there are no values; std::domain_error if share is NaN or outside [0, 1]
double sorted_quantile(std::span<const double> sorted, double share);

/// The same for values in any order, in time linear in their number.
double quantile(std::vector<double> values, double share);

}  // namespace specdec::core
