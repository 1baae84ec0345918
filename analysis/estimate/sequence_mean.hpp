#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/cluster_table.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/position_labels.hpp"

namespace specdec::estimate {

/// The mean of a column over the positions of a recording, with an interval over its clusters, which are the prompts,
/// or the texts if the prompts are unknown; in one pass and fixed memory. It does not depend on the order of the texts.
///
///   sum of the clusters' sums / sum of their lengths, the linearised ratio with Student's t; a single text by
///   batches of its positions
///
/// The interval stays within the range of the values: if that has two ends, bounded_t_interval is used.
/// Source:   docs/theory.md#intervals-from-recordings
/// Assumes:  independent clusters; any dependence inside one.
class SequenceMean {
 public:
  SequenceMean() = default;
  /// @param range  the range of the values; its ends may be infinite
  explicit SequenceMean(Interval range) : range_(range) {}

  /// Adds the next positions; a text may continue in the next call. Values that are not finite are left out.
  /// Shape: both (positions)
  /// @throws std::invalid_argument if the sizes differ
  void add(const PositionLabels& labels, std::span<const double> values);
  /// Adds the texts of another object, none of which is in this one.
  void merge(SequenceMean other);

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    end_text();
    archive(clusters_, batches_, positions_);
  }

  std::int64_t positions() const { return positions_; }
  /// Empty if no value was finite.
  std::optional<Estimate> estimate() const;

 private:
  void end_text();

  Interval range_{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  ClusterTable clusters_{2};
  StreamingBatches batches_;  // batches of the first text
  std::int64_t positions_ = 0;
  std::int64_t sequence_ = -1;
  std::uint64_t cluster_ = 0;
  double sum_ = 0;
  double length_ = 0;
};

}  // namespace specdec::estimate
