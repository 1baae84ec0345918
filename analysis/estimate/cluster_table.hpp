#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "analysis/core/exact_sum.hpp"
#include "analysis/estimate/cluster_ratio.hpp"

namespace specdec::estimate {

/// One independent unit, or a bucket of several units.
struct Cluster {
  std::uint64_t key = 0;  ///< for a bucket: the leading bits that its clusters share
  std::int32_t task = -1;
  std::int64_t texts = 0;
  std::vector<double> sums;  // (columns)
};

/// Sums over the texts of each cluster, and of each cluster within each task, in bounded memory. The result is a
/// function of the set of texts, whatever their order and however they were divided among merged tables.
///
/// If there are more than `most_rows` clusters, those whose keys share their leading bits become one, for the largest
/// number of bits that leaves at most that many. The keys look random, so buckets are as independent as the clusters,
/// and there are more than most_rows / 2 of them. The same holds for the pairs of cluster and task, but each task keeps
/// at least two buckets.
class ClusterTable {
 public:
  static constexpr std::size_t most_rows = 2048;

  explicit ClusterTable(std::size_t columns) : columns_(columns) {}

  /// Adds the sums of one text. Shape: values (columns)
  /// @param task  -1 if it has none
  void add(std::uint64_t key, std::int32_t task, std::span<const double> values);
  void merge(const ClusterTable& other);

  /// True if clusters had to be merged into buckets.
  bool bucketed() const { return all_.bits < 64; }
  std::int64_t texts() const { return texts_; }
  bool empty() const { return texts_ == 0; }

  /// True if some cluster is in several tasks, or if clusters had to be merged into buckets, which do not tell.
  bool tasks_may_share() const {
    return has_tasks_ && (bucketed() || tasks_.bits < 64 || tasks_.of.size() > all_.of.size());
  }

  /// By key, over all tasks.
  std::vector<Cluster> clusters() const;
  /// By task and key.
  std::vector<std::vector<Cluster>> by_task() const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(texts_, all_, has_tasks_, tasks_);
    archive.require(texts_ >= 0 && all_.has_columns(columns_) && tasks_.has_columns(columns_));
  }

 private:
  struct Row {
    std::int64_t texts = 0;
    std::vector<core::ExactSum> sums;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(texts, sums);
    }
  };
  using Key = std::pair<std::uint64_t, std::int32_t>;  // a cluster's leading bits, and the task or -1
  struct Rows {
    unsigned bits = 64;
    std::map<Key, Row> of;

    Row& at(Key key, std::size_t columns);
    void add(const Rows& other, std::size_t columns);
    void keep_few(std::size_t columns);
    bool has_columns(std::size_t columns) const;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(bits, of);
    }
  };
  void begin_tasks();

  std::size_t columns_;
  std::int64_t texts_ = 0;
  Rows all_;
  /// Filled only once a task has been seen; without one they would equal all_.
  bool has_tasks_ = false;
  Rows tasks_;
};

/// The name of the method for an interval over clusters.
inline constexpr const char* ratio_over_clusters = "ratio of sums over prompts, or sequences without one, Student's t";

/// Two columns of a table as the terms of a ratio.
struct RatioSums {
  double numerator = 0;
  double denominator = 0;
  std::vector<RatioTerm> clusters;
};
RatioSums ratio_sums(std::span<const Cluster> clusters, std::size_t numerator, std::size_t denominator);
RatioSums ratio_sums(const ClusterTable& table, std::size_t numerator, std::size_t denominator);

}  // namespace specdec::estimate
