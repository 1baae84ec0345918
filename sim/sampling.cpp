#include "sim/sampling.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

template <class Weight>
double sum(std::size_t size, Weight weight) {
  double total = 0;
  for (std::size_t x = 0; x < size; ++x) total += weight(x);
  return total;
}

/// Adds up in the order of sum(), so that the last cumulative sum is `total` itself and exceeds u times it.
template <class Weight>
Token invert_cumulative(std::size_t size, Weight weight, double total, double u) {
  const double threshold = u * total;
  double cumulative = 0;
  std::size_t last_possible = 0;
  for (std::size_t x = 0; x < size; ++x) {
    if (!(weight(x) > 0)) continue;
    cumulative += weight(x);
    last_possible = x;
    if (cumulative > threshold) break;
  }
  return static_cast<Token>(last_possible);
}

}  // namespace

Token sample(std::span<const double> probabilities, double u) {
  const auto weight = [probabilities](std::size_t x) { return probabilities[x]; };
  const double total = sum(probabilities.size(), weight);
  core::require_in("sample", "total", total, std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
  return invert_cumulative(probabilities.size(), weight, total, u);
}

Token sample_residual(const core::TargetDistribution& p, const core::DraftDistribution& q, double u,
                      const ResidualScale& scale) {
  core::require_same_size("sample_residual", "p", p.size(), "q", q.size());
  const auto weight = [&](std::size_t x) { return std::max(0.0, scale.target * p[x] - scale.draft * q[x]); };
  const double mass = sum(p.size(), weight);
  // Rows that agree to rounding differ by a few ulp of 1 in sum; the branch is then reached by rounding alone.
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  if (mass <= rounding) return sample(p.probabilities(), u);
  return invert_cumulative(p.size(), weight, mass, u);
}

}  // namespace specdec::sim
