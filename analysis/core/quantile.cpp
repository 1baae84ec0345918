#include "analysis/core/quantile.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::core {

double sorted_quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) throw std::invalid_argument("quantile: there are no values");
  require_in("quantile", "share", share, 0, 1);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double quantile(std::span<const double> values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted_quantile(sorted, share);
}

}  // namespace specdec::core
