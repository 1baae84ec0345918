#include "analysis/core/quantile.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::core {
namespace {

struct QuantilePlace {
  std::size_t below;
  double part;

  QuantilePlace(std::size_t count, double share) {
    if (count == 0) throw std::invalid_argument("quantile: there are no values");
    require_in("quantile", "share", share, 0, 1);
    const double place = share * static_cast<double>(count - 1);
    below = static_cast<std::size_t>(place);
    part = place - static_cast<double>(below);
  }
  double between(double low, double high) const { return part == 0 || low == high ? low : low + part * (high - low); }
};

}  // namespace

double sorted_quantile(std::span<const double> sorted, double share) {
  const QuantilePlace place(sorted.size(), share);
  return place.between(sorted[place.below], sorted[std::min(place.below + 1, sorted.size() - 1)]);
}

double quantile(std::span<const double> values, double share) {
  const QuantilePlace place(values.size(), share);
  std::vector<double> parted(values.begin(), values.end());
  const auto low = parted.begin() + static_cast<std::ptrdiff_t>(place.below);
  std::nth_element(parted.begin(), low, parted.end());
  return place.between(*low, low + 1 == parted.end() ? *low : *std::min_element(low + 1, parted.end()));
}

}  // namespace specdec::core
