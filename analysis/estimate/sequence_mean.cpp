#include "analysis/estimate/sequence_mean.hpp"

#include <cmath>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {

void SequenceMean::add(std::span<const std::int64_t> sequence, std::span<const double> values) {
  core::require_same_size("SequenceMean::add", "sequence", sequence.size(), "values", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    if (sequence[i] != current_ && length_ > 0) {
      sequences_.add(sum_, length_);
      sum_ = length_ = 0;
    }
    current_ = sequence[i];
    sum_ += values[i];
    length_ += 1;
    batches_.add(values[i], 1);
  }
}

std::optional<Estimate> SequenceMean::estimate() const {
  if (length_ == 0) return std::nullopt;
  ClusterMoments clusters = sequences_;
  clusters.add(sum_, length_);
  Estimate mean;
  mean.value = clusters.numerator() / clusters.denominator();
  const bool single = clusters.clusters() == 1;
  const std::optional<StandardError> error = standard_error(single ? batches_.moments() : clusters);
  if (error) mean.ci95 = t_interval(mean.value, *error);
  mean.method = single ? "mean, batch means of the one sequence" : "ratio of sums over sequences, Student's t";
  return mean;
}

}  // namespace specdec::estimate
