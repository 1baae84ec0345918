#include "analysis/estimate/draft_calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "analysis/core/checks.hpp"
#include "analysis/core/unit_bins.hpp"

namespace specdec::estimate {

DraftCalibration::DraftCalibration(std::int64_t bins) {
  core::require_in("DraftCalibration", "bins", bins, std::int64_t{0}, std::int64_t{1024});
  by_token_.resize(static_cast<std::size_t>(bins));
  by_top_.resize(static_cast<std::size_t>(bins));
}

void DraftCalibration::add(const Observations& observations) {
  const auto size = static_cast<std::size_t>(observations.size);
  const PositionLabels labels = observations.labels();
  const std::vector<double>& top = observations.draft_top_probability;
  const Bracketed& accepted = observations.mean_acceptance;
  if (!by_top_.empty() && !top.empty() && !accepted.empty()) {
    for (std::size_t i = 0; i < size; ++i) {
      if (std::isnan(top[i]) || !accepted.exact_at(i)) continue;
      ++positions_with_top_;
      const std::size_t bin = core::unit_bin(top[i], by_top_.size());
      for (std::size_t b = 0; b < by_top_.size(); ++b) {
        by_top_[b].add(labels.sequence[i], labels.cluster(i),
                       b == bin ? std::array{accepted.lower[i], 1.0, top[i]} : std::array<double, 3>{});
      }
    }
  }
  if (observations.by_confidence.empty()) return;
  core::require_same_size("DraftCalibration::add", "by_confidence", observations.by_confidence.size(), "bins",
                          by_token_.size());
  positions_ += observations.size;
  for (std::size_t b = 0; b < by_token_.size(); ++b) {
    for (std::size_t i = 0; i < size; ++i) {
      const core::DraftConfidence& seen = observations.by_confidence[b][i];
      by_token_[b].add(labels.sequence[i], labels.cluster(i), {seen.accepted, seen.drafted, seen.confidence});
    }
  }
}

void DraftCalibration::merge(const DraftCalibration& other) {
  core::require_same_size("DraftCalibration::merge", "the bins of the other", other.by_token_.size(), "bins",
                          by_token_.size());
  for (std::size_t b = 0; b < by_token_.size(); ++b) by_token_[b].merge(other.by_token_[b]);
  for (std::size_t b = 0; b < by_top_.size(); ++b) by_top_[b].merge(other.by_top_[b]);
  positions_ += other.positions_;
  positions_with_top_ += other.positions_with_top_;
}

std::vector<CalibratedBin> DraftCalibration::by_token() const {
  return positions_ > 0 ? told(by_token_) : std::vector<CalibratedBin>{};
}

std::vector<CalibratedBin> DraftCalibration::by_top() const {
  return positions_with_top_ > 0 ? told(by_top_) : std::vector<CalibratedBin>{};
}

std::vector<CalibratedBin> DraftCalibration::told(const std::vector<Bin>& bins) {
  std::vector<CalibratedBin> result;
  const auto count = static_cast<double>(bins.size());
  for (Bin bin : bins) {
    bin.end_text();
    const auto place = static_cast<double>(result.size());
    CalibratedBin& calibrated = result.emplace_back();
    calibrated.lo = place / count;
    calibrated.hi = (place + 1) / count;
    calibrated.positions = bin.positions();
    const RatioSums sums = ratio_sums(bin.clusters(), 0, 1);
    calibrated.drafted = sums.denominator;
    if (!(calibrated.drafted > 0)) continue;
    calibrated.confidence = ratio_sums(bin.clusters(), 2, 1).numerator / calibrated.drafted;
    Estimate& acceptance = calibrated.acceptance.emplace();
    // Rows as stored may sum to a little more than 1.
    acceptance.value = std::min(1.0, sums.numerator / calibrated.drafted);
    acceptance.method =
        std::string(bin.one_text() ? "batch means of the one sequence" : ratio_over_clusters) + ", within [0, 1]";
    const auto error = bin.error();
    if (error && error->value > 0) acceptance.ci95 = bounded_t_interval(acceptance.value, *error, 0, 1);
  }
  return result;
}

}  // namespace specdec::estimate
