#include "analysis/estimate/neighbour_correlation.hpp"

#include <algorithm>
#include <cmath>

namespace specdec::estimate {

double NeighbourCorrelation::variance_inflation() const {
  const double n = windows_per_series;
  const double without_ends = (1 + value) / (1 - value);
  const double ends = 2 * value * (1 - std::pow(value, n)) / (n * (1 - value) * (1 - value));
  return std::max(1.0, without_ends - ends);
}

NeighbourCorrelation neighbour_correlation(std::span<const std::vector<double>> residuals_of_series) {
  constexpr double most = 0.97;
  double products = 0, squares = 0, pairs = 0, windows = 0;
  for (const std::vector<double>& series : residuals_of_series) {
    for (std::size_t k = 0; k < series.size(); ++k) {
      squares += series[k] * series[k];
      if (k == 0) continue;
      products += series[k - 1] * series[k];
      ++pairs;
    }
    windows += static_cast<double>(series.size());
  }
  if (windows < static_cast<double>(least_windows_to_correlate) || !(squares > 0) || pairs == 0) return {};
  const double found = products / pairs / (squares / windows);
  const double unbiased = (found + 1 / windows) / (1 - 3 / windows);
  return {std::clamp(unbiased, 0.0, most), windows / static_cast<double>(residuals_of_series.size())};
}

}  // namespace specdec::estimate
