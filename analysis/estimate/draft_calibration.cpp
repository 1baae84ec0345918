#include "analysis/estimate/draft_calibration.hpp"

#include <algorithm>
#include <cstddef>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {

void DraftCalibration::CalibrationSums::end_sequence() {
  if (drafted > 0) ended.add(accepted, drafted);
  accepted = drafted = 0;
}

void DraftCalibration::add(const Observations& observations) {
  if (observations.by_confidence.empty()) return;
  if (positions_ == 0) bins_.resize(observations.by_confidence.size());
  core::require_same_size("DraftCalibration::add", "by_confidence", observations.by_confidence.size(),
                          "that of the positions before", bins_.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(observations.size); ++i) {
    const bool begins = observations.sequence[i] != sequence_;
    sequence_ = observations.sequence[i];
    ++positions_;
    for (std::size_t b = 0; b < bins_.size(); ++b) {
      const core::DraftConfidence& seen = observations.by_confidence[b][i];
      CalibrationSums& bin = bins_[b];
      if (begins) bin.end_sequence();
      bin.accepted += seen.accepted;
      bin.drafted += seen.drafted;
      bin.confidence.add(seen.confidence);
      bin.batches.add(seen.accepted, seen.drafted);
    }
  }
}

std::vector<CalibratedBin> DraftCalibration::bins() const {
  std::vector<CalibratedBin> result;
  const auto count = static_cast<double>(bins_.size());
  for (const CalibrationSums& open : bins_) {
    CalibrationSums bin = open;
    bin.end_sequence();
    const auto place = static_cast<double>(result.size());
    CalibratedBin& calibrated = result.emplace_back();
    calibrated.lo = place / count;
    calibrated.hi = (place + 1) / count;
    calibrated.drafted = bin.ended.denominator();
    if (!(calibrated.drafted > 0)) continue;
    calibrated.confidence = bin.confidence.value() / calibrated.drafted;
    Estimate& acceptance = calibrated.acceptance.emplace();
    // Rows as stored may sum to a little more than 1.
    acceptance.value = std::min(1.0, bin.ended.numerator() / calibrated.drafted);
    const bool single = bin.ended.clusters() == 1;
    acceptance.method = single ? "batch means of the one sequence, within [0, 1]"
                               : "ratio of sums over sequences, Student's t, within [0, 1]";
    const auto error = standard_error(single ? bin.batches.moments() : bin.ended);
    if (error && error->value > 0) acceptance.ci95 = bounded_t_interval(acceptance.value, *error, 0, 1);
  }
  return result;
}

}  // namespace specdec::estimate
