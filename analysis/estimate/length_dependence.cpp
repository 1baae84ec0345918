#include "analysis/estimate/length_dependence.hpp"

#include <cmath>
#include <vector>

#include "analysis/core/tails.hpp"

namespace specdec::estimate {

std::optional<LengthDependence> length_dependence(std::span<const RatioTerm> clusters) {
  std::vector<double> x, y;
  double mean_x = 0;
  double mean_y = 0;
  for (const RatioTerm& cluster : clusters) {
    if (!(cluster.denominator > 0)) continue;
    x.push_back(std::log2(cluster.denominator));
    y.push_back(cluster.numerator / cluster.denominator);
    mean_x += x.back();
    mean_y += y.back();
  }
  const auto count = static_cast<double>(x.size());
  if (x.size() < static_cast<std::size_t>(least_tested_clusters)) return std::nullopt;
  mean_x /= count;
  mean_y /= count;
  double xx = 0;
  double xy = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    xx += (x[k] - mean_x) * (x[k] - mean_x);
    xy += (x[k] - mean_x) * (y[k] - mean_y);
  }
  constexpr double rounding = 1e-12;
  if (!(xx > rounding * count)) return std::nullopt;
  const double slope = xy / xx;
  double variance = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double off = x[k] - mean_x;
    const double left = 1 - 1 / count - off * off / xx;
    const double residual = y[k] - mean_y - slope * off;
    // A single cluster of another length determines the slope alone: it has no residual, and there is no test.
    if (!(left > rounding)) return std::nullopt;
    variance += std::pow(off * residual / left, 2);
  }
  const double error = std::sqrt(variance) / xx;
  const double degrees_of_freedom = count - 2;
  LengthDependence result{{slope, std::nullopt, "least squares on log2 of the length, HC3"}, 1};
  result.per_doubling.ci95 = t_interval(slope, {error, degrees_of_freedom});
  if (slope != 0) result.p_value = error > 0 ? 2 * core::t_tail(std::abs(slope) / error, degrees_of_freedom) : 0;
  return result;
}

}  // namespace specdec::estimate
