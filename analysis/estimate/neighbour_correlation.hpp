#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace specdec::estimate {

/// The correlation between neighbours, for clusters that are consecutive windows of series.
struct NeighbourCorrelation {
  /// Coefficient of an autoregression of first order, [0, 1).
  double value = 0;
  /// Windows of a series, the mean over them, >= 1.
  double windows_per_series = 1;

  /// The variance of a series' mean as a multiple of that of independent windows, in [1, n],
  ///
  ///   f = (1 + r) / (1 - r) - 2 r (1 - r^n) / (n (1 - r)^2)
  double variance_inflation() const;
};

/// From the residuals of series, in order and around one common mean: the products of neighbours over the squares, each
/// divided by its number, corrected for its bias over N windows,
///
///   r = (r_1 + 1 / N) / (1 - 3 / N),   at least 0, at most .97
///
/// Zero below least_windows_to_correlate windows, which tell nothing of it.
/// Source:   Kendall 1954, Marriott and Pope 1954; docs/theory.md#acceptance-from-counters
NeighbourCorrelation neighbour_correlation(std::span<const std::vector<double>> residuals_of_series);
inline constexpr std::size_t least_windows_to_correlate = 10;

}  // namespace specdec::estimate
