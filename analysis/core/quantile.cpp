#include "analysis/core/quantile.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::core {
namespace {

std::size_t place_below(std::size_t count, double share) {
  if (count == 0) throw std::invalid_argument("quantile: there are no values");
  require_in("quantile", "share", share, 0, 1);
  return static_cast<std::size_t>(share * static_cast<double>(count - 1));
}

}  // namespace

double sorted_quantile(std::span<const double> sorted, double share) {
  const std::size_t below = place_below(sorted.size(), share);
  const double part = share * static_cast<double>(sorted.size() - 1) - static_cast<double>(below);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return part == 0 || low == high ? low : low + part * (high - low);
}

double quantile(std::vector<double> values, double share) {
  // It needs two neighbours in their places alone.
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(place_below(values.size(), share));
  std::nth_element(values.begin(), low, values.end());
  if (low + 1 != values.end()) std::iter_swap(low + 1, std::min_element(low + 1, values.end()));
  return sorted_quantile(values, share);
}

}  // namespace specdec::core
