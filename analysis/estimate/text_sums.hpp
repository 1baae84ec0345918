#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/cluster_table.hpp"

/// Internal to analysis/estimate.
namespace specdec::estimate {

/// Sums of `columns` values over texts that are read position by position, kept by cluster, in one pass and fixed
/// memory. The second column is the denominator of ratios: positions and texts without any of it do not count.
template <std::size_t columns>
class TextSums {
 public:
  /// Adds the next position; a text ends where another sequence begins.
  void add(std::int64_t sequence, std::uint64_t cluster, const std::array<double, columns>& values) {
    if (sequence != sequence_) end_text();
    sequence_ = sequence;
    cluster_ = cluster;
    for (std::size_t i = 0; i < columns; ++i) sums_[i] += values[i];
    if (clusters_.empty()) batches_.add(values[0], values[1]);
    if (values[1] > 0) ++positions_;
  }

  /// Adds the texts of another object, none of which is in this one.
  void merge(TextSums other) {
    end_text();
    other.end_text();
    if (clusters_.empty()) batches_ = other.batches_;
    clusters_.merge(other.clusters_);
    positions_ += other.positions_;
  }

  void end_text() {
    if (sums_[1] > 0) {
      clusters_.add(cluster_, -1, sums_);
    } else if (clusters_.empty()) {
      batches_ = {};
    }
    sums_ = {};
  }

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    end_text();
    archive(clusters_, batches_, positions_);
  }

  std::int64_t positions() const { return positions_; }
  /// Those of the texts that have ended.
  const ClusterTable& clusters() const { return clusters_; }
  bool one_text() const { return clusters_.texts() == 1; }
  /// Of the first column by the second: over clusters, for a single text by batches of its positions.
  std::optional<StandardError> error() const {
    return one_text() ? standard_error(batches_.moments()) : standard_error(ratio_sums(clusters_, 0, 1).clusters);
  }

 private:
  ClusterTable clusters_{columns};
  StreamingBatches batches_;               // of the first text
  std::array<double, columns> sums_ = {};  // of the text that may still continue
  std::int64_t positions_ = 0;
  std::int64_t sequence_ = -1;
  std::uint64_t cluster_ = 0;
};

}  // namespace specdec::estimate
