#include "analysis/estimate/round_moments.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {

void RoundMoments::add(std::span<const double> accepted, std::span<const double> evaluated) {
  core::require_same_size("RoundMoments::add", "accepted", accepted.size(), "evaluated", evaluated.size());
  core::require_in("RoundMoments::add", "positions", static_cast<std::int64_t>(accepted.size()), std::int64_t{0},
                   most_positions);
  const std::size_t needed = 2 * accepted.size();
  if (sums_.size() < needed) {
    sums_.resize(needed);
    means_.resize(needed);
    products_.resize(needed * (needed + 1) / 2);
  }
  const auto k = static_cast<double>(++clusters_);
  off_.resize(sums_.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const double value = i >= needed ? 0 : i % 2 == 0 ? accepted[i / 2] : evaluated[i / 2];
    off_[i] = value - means_[i];
    sums_[i] += value;
    means_[i] += off_[i] / k;
  }
  const double weight = (k - 1) / k;
  double* row = products_.data();
  for (std::size_t i = 0; i < off_.size(); ++i) {
    const double scale = weight * off_[i];
    for (std::size_t j = 0; j <= i; ++j) row[j] += scale * off_[j];
    row += i + 1;
  }
}

std::optional<StandardError> RoundMoments::standard_error(std::span<const double> gradient) const {
  core::require_same_size("RoundMoments::standard_error", "gradient", gradient.size(), "positions", sums_.size() / 2);
  if (clusters_ < 2) return std::nullopt;
  std::vector<double> weights(sums_.size());
  for (std::int64_t j = 1; j <= positions(); ++j) {
    if (!(evaluated(j) > 0)) continue;
    const double weight = gradient[static_cast<std::size_t>(j - 1)] / evaluated(j);
    weights[index(j)] = weight;
    weights[index(j) + 1] = -weight * rate(j);
  }
  double squares = 0;
  const double* row = products_.data();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double along_row = 0;
    for (std::size_t j = 0; j < i; ++j) along_row += row[j] * weights[j];
    squares += weights[i] * (2 * along_row + row[i] * weights[i]);
    row += i + 1;
  }
  const auto k = static_cast<double>(clusters_);
  return of_neighbours({std::sqrt(std::max(0.0, squares) * k / (k - 1)), k - 1}, clusters_, neighbours_);
}

}  // namespace specdec::estimate
