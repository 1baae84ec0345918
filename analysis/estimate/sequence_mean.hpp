#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/position_labels.hpp"
#include "analysis/estimate/text_sums.hpp"

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
  void merge(const SequenceMean& other) { texts_.merge(other.texts_); }

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(texts_);
  }

  std::int64_t positions() const { return texts_.positions(); }
  /// Empty if no value was finite.
  std::optional<Estimate> estimate() const;

 private:
  Interval range_{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  /// The values, and their number.
  TextSums<2> texts_;
};

}  // namespace specdec::estimate
