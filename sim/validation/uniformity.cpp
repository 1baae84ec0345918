#include "sim/validation/uniformity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/core/checks.hpp"

namespace specdec::validation {
namespace {

// Mass of the tokens that precede `token` in ascending order of `key`, ties in order of the index. Tokens of
// probability 0 may have any key, NaN included.
template <class Key>
double mass_before(std::span<const double> probabilities, std::size_t token, const Key& key) {
  const double own = key(token);
  double mass = 0;
  for (std::size_t y = 0; y < token; ++y) mass += key(y) <= own ? probabilities[y] : 0.0;
  for (std::size_t y = token + 1; y < probabilities.size(); ++y) mass += key(y) < own ? probabilities[y] : 0.0;
  return mass;
}

}  // namespace

double transform_by_ratio(std::span<const double> target, std::span<const double> draft, sim::Token token, double u) {
  const auto x = static_cast<std::size_t>(token);
  const double before = mass_before(target, x, [&](std::size_t y) { return draft[y] / target[y]; });
  return std::min(1.0, before + u * target[x]);
}

double transform_by_probability(std::span<const double> target, sim::Token token, double u) {
  const auto x = static_cast<std::size_t>(token);
  const double before = mass_before(target, x, [&](std::size_t y) { return -target[y]; });
  return std::min(1.0, before + u * target[x]);
}

double kolmogorov_distance(std::span<double> values) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double below = static_cast<double>(i) / n;
    const double above = static_cast<double>(i + 1) / n;
    distance = std::max({distance, above - values[i], values[i] - below});
  }
  return distance;
}

double kolmogorov_p_value(double distance, std::int64_t n) {
  core::require_in("kolmogorov_p_value", "distance", distance, 0.0, 1.0);
  core::require_in("kolmogorov_p_value", "n", n, std::int64_t{1}, std::numeric_limits<std::int64_t>::max());
  return std::min(1.0, 2 * std::exp(-2 * static_cast<double>(n) * distance * distance));
}

double two_sided_normal_p_value(double z) { return std::erfc(std::abs(z) / std::numbers::sqrt2); }

}  // namespace specdec::validation
