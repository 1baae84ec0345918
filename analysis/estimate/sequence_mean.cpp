#include "analysis/estimate/sequence_mean.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {

void SequenceMean::add(const PositionLabels& labels, std::span<const double> values) {
  core::require_same_size("SequenceMean::add", "sequence", labels.size(), "values", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    texts_.add(labels.sequence[i], labels.cluster(i), {values[i], 1});
  }
}

std::optional<Estimate> SequenceMean::estimate() const {
  TextSums<2> texts = texts_;
  texts.end_text();
  if (texts.clusters().empty()) return std::nullopt;
  const RatioSums sums = ratio_sums(texts.clusters(), 0, 1);
  Estimate mean;
  mean.value = std::clamp(sums.numerator / sums.denominator, range_.lo, range_.hi);
  const std::optional<StandardError> error = texts.error();
  if (error && std::isfinite(range_.hi - range_.lo)) {
    mean.ci95 = bounded_t_interval(mean.value, *error, range_.lo, range_.hi);
  } else if (error) {
    const Interval interval = t_interval(mean.value, *error);
    mean.ci95 = Interval{std::max(interval.lo, range_.lo), std::min(interval.hi, range_.hi)};
  }
  mean.method = texts.one_text() ? "mean, batch means of the one sequence" : ratio_over_clusters;
  return mean;
}

}  // namespace specdec::estimate
