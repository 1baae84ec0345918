#include "sim/sampling.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"
#include "sim/weight_sums.hpp"

namespace specdec::sim {
namespace {

/// Adds in the same way as sum_of_weights(), so that the last cumulative sum is `total` itself and exceeds u times it:
/// first past the blocks before the token's, then token by token.
template <class Weight>
Token invert_cumulative(std::size_t size, const Weight& weight, double total, double u) {
  const double threshold = u * total;
  double cumulative = 0;
  std::size_t x = 0;
  for (; x + block_of_weights <= size; x += block_of_weights) {
    const double behind = cumulative + sum_of_block(x, weight);
    if (behind > threshold) break;
    cumulative = behind;
  }
  const std::size_t end = std::min(x + block_of_weights, size);
  for (; x < end; ++x) {
    cumulative += weight(x);
    if (weight(x) > 0 && cumulative > threshold) return static_cast<Token>(x);
  }
  // By rounding alone: the last possible token.
  while (x > 1 && !(weight(x - 1) > 0)) --x;
  return static_cast<Token>(x - 1);
}

}  // namespace

Token sample(std::span<const double> probabilities, double u) {
  const auto weight = [probabilities](std::size_t x) { return probabilities[x]; };
  const double total = sum_of_weights(probabilities.size(), weight);
  core::require_in("sample", "total", total, std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
  return invert_cumulative(probabilities.size(), weight, total, u);
}

Token sample_residual(const core::TargetDistribution& p, const core::DraftDistribution& q, double u,
                      const ResidualScale& scale) {
  core::require_same_size("sample_residual", "p", p.size(), "q", q.size());
  const auto weight = [&](std::size_t x) { return std::max(0.0, scale.target * p[x] - scale.draft * q[x]); };
  const double mass = sum_of_weights(p.size(), weight);
  // Rows that agree to rounding differ by a few ulp of 1 in sum; only rounding then leads to this branch.
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  if (mass <= rounding) return sample(p.probabilities(), u);
  return invert_cumulative(p.size(), weight, mass, u);
}

}  // namespace specdec::sim
