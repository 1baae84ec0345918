#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// The mean of a column over the positions of a recording, with an interval over its sequences; in one pass and fixed
/// memory.
///
///   sum over sequences of their sums / of their lengths, the linearised ratio with Student's t; a single sequence by
///   batches of its positions
///
/// Source:   docs/theory.md#intervals-from-recordings
/// Assumes:  sequences independent; nothing about dependence inside one.
class SequenceMean {
 public:
  /// The next positions, in order; a sequence may go on in the next call. Values that are not finite are left out.
  /// Shape: both (positions)
  /// @throws std::invalid_argument if the sizes differ
  void add(std::span<const std::int64_t> sequence, std::span<const double> values);

  std::int64_t positions() const { return batches_.values(); }
  /// Nothing where no value was finite.
  std::optional<Estimate> estimate() const;

 private:
  ClusterMoments sequences_;  // those that have ended
  StreamingBatches batches_;
  std::int64_t current_ = -1;
  double sum_ = 0;
  double length_ = 0;
};

}  // namespace specdec::estimate
