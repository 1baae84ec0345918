#include "analysis/core/quantile.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::core {

double sorted_quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) throw std::invalid_argument("quantile: there are no values");
  require_in("quantile", "share", share, 0, 1);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double part = place - static_cast<double>(below);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return part == 0 || low == high ? low : low + part * (high - low);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return sorted_quantile(values, share);
}

}  // namespace specdec::core
