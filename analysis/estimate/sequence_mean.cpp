#include "analysis/estimate/sequence_mean.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {

void SequenceMean::add(const PositionLabels& labels, std::span<const double> values) {
  core::require_same_size("SequenceMean::add", "sequence", labels.size(), "values", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    if (labels.sequence[i] != sequence_) end_text();
    sequence_ = labels.sequence[i];
    cluster_ = labels.cluster(i);
    sum_ += values[i];
    length_ += 1;
    ++positions_;
    if (clusters_.texts() == 0) batches_.add(values[i], 1);
  }
}

void SequenceMean::end_text() {
  if (length_ > 0) clusters_.add(cluster_, -1, std::array{sum_, length_});
  sum_ = length_ = 0;
}

void SequenceMean::merge(SequenceMean other) {
  end_text();
  other.end_text();
  if (positions_ == 0) batches_ = other.batches_;
  clusters_.merge(other.clusters_);
  positions_ += other.positions_;
}

std::optional<Estimate> SequenceMean::estimate() const {
  SequenceMean ended = *this;
  ended.end_text();
  if (ended.clusters_.empty()) return std::nullopt;
  const RatioSums sums = ratio_sums(ended.clusters_, 0, 1);
  Estimate mean;
  mean.value = std::clamp(sums.numerator / sums.denominator, range_.lo, range_.hi);
  const bool single = ended.clusters_.texts() == 1;
  const std::optional<StandardError> error =
      single ? standard_error(ended.batches_.moments()) : standard_error(sums.clusters);
  if (error && std::isfinite(range_.hi - range_.lo)) {
    mean.ci95 = bounded_t_interval(mean.value, *error, range_.lo, range_.hi);
  } else if (error) {
    const Interval interval = t_interval(mean.value, *error);
    mean.ci95 = Interval{std::max(interval.lo, range_.lo), std::min(interval.hi, range_.hi)};
  }
  mean.method = single ? "mean, batch means of the one sequence" : ratio_over_clusters;
  return mean;
}

}  // namespace specdec::estimate
