#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/observations.hpp"

namespace specdec::estimate {

/// Drafted tokens to which the draft gave a probability in [lo, hi).
struct CalibratedBin {
  double lo = 0;
  double hi = 0;
  /// Expected number of such tokens, one token drafted at each position.
  double drafted = 0;
  /// Their mean probability by the draft, and the share of them that is accepted; nothing where none is drafted.
  std::optional<double> confidence;
  std::optional<Estimate> acceptance;
};

/// How often drafted tokens are accepted, by the probability that the draft gave them: what a confidence policy rests
/// on. Tokens count as the draft samples them, and not as the text holds them, which favours those that the target
/// likes; so it takes whole rows, and nothing is random but the prefixes.
///
///   acceptance = sum_t accepted_t / sum_t drafted_t   over the positions t, with core::DraftConfidence's sums
///
/// The interval is that of a ratio of sums over sequences with Student's t, within [0, 1]; of a single sequence that of
/// batches of its positions. Sequences in which nothing of a bin was drafted do not count for it.
/// Source:   docs/theory.md#draft-calibration
class DraftCalibration {
 public:
  /// The next positions, in order; those without Observations::by_confidence are left out.
  /// @throws std::invalid_argument if the number of bins is not that of the positions before
  void add(const Observations& observations);

  std::int64_t positions() const { return positions_; }
  /// Equal bins of [0, 1]; empty where no position had any.
  std::vector<CalibratedBin> bins() const;

 private:
  struct CalibrationSums {
    ClusterMoments ended;  // sequences
    StreamingBatches batches;
    core::CompensatedSum confidence;
    double accepted = 0, drafted = 0;  // of the sequence that may go on

    void end_sequence();
  };
  std::vector<CalibrationSums> bins_;
  std::int64_t positions_ = 0;
  std::int64_t sequence_ = -1;
};

}  // namespace specdec::estimate
