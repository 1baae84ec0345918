#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/cluster_table.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/length_dependence.hpp"
#include "analysis/estimate/observations.hpp"

namespace specdec::estimate {

/// An acceptance rate, or what a bracket of every position leaves of it.
struct AcceptanceEstimate {
  /// Nothing where the positions are known within brackets only.
  std::optional<double> value;
  /// The rates of the lower and the upper ends; both are `value` where that is known.
  Interval bounds;
  /// Covers both ends; nothing where the data determine no interval.
  std::optional<Interval> ci95;
  std::string method;
  /// What limits the interval, in words: few rejections, a single text or prompt, positions left out.
  std::vector<std::string> notes;
  /// Positions with a value.
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  /// The independent units: prompts, or sequences where the prompts are unknown; buckets of them where there are more
  /// than ClusterTable::most_rows.
  std::int64_t clusters = 0;
  bool prompts = false;
  /// How many clusters of equal length are worth as much, and what the interval's t has; nothing without an interval
  /// over clusters.
  double effective_clusters = 0;
  std::optional<double> degrees_of_freedom;
  /// Nothing where there are too few clusters or all are as long.
  std::optional<LengthDependence> length_dependence;

  /// So few or so unequal clusters that the interval may cover less than 95%.
  bool few_clusters() const;
  /// Expected rejections, the sum of 1 - a_t (at the brackets' middle).
  double rejections = 0;
};

/// Whether the shares of the tasks would be the same in another recording.
enum class TaskMix {
  random,  ///< sequences come as they come; their tasks are part of the sample
  fixed,   ///< the numbers of sequences of each task were chosen: the interval is stratified by task
};

/// Below this many expected rejections the interval is never narrower than Wilson's on the effective count.
inline constexpr double few_rejections = 20;
/// Below this many sequences an interval of counters is given with a note; below the same number of effective clusters,
/// or the degrees of freedom that clusters of equal length would have, one of a recording.
inline constexpr std::int64_t few_sequences = 16;

/// One rate of one recording: a column of numbers in [0, 1], or of brackets, over its clusters and tasks. It does not
/// depend on the order of the texts.
class RateAccumulator {
 public:
  /// The next positions. Shape: lower, upper (positions * stride), of which every stride-th counts; NaN is left out.
  void add(const PositionLabels& labels, std::span<const double> lower, std::span<const double> upper,
           std::int64_t stride = 1);
  /// The next positions, none of which has a value.
  void skip(std::int64_t positions) { unknown_ += positions; }
  /// The texts of another one, none of which is here.
  void merge(RateAccumulator other);

  std::optional<AcceptanceEstimate> overall(TaskMix mix) const;
  std::map<std::int32_t, AcceptanceEstimate> by_task() const;

 private:
  /// Sums over the text that may still go on.
  struct Sums {
    double lower = 0, upper = 0, count = 0;
  };
  /// All texts, or those of a task. The first one is judged by batches while it is the only one: as it grows, and once
  /// it has ended.
  struct Group {
    std::int64_t texts = 0;
    StreamingBatches lower_batches, upper_batches;
    ClusterMoments lower_of_first, upper_of_first;
    Sums open;

    /// In the order of the positions, whatever the batches: sums do not depend on the cuts.
    void add(double low, double high);
    void close();
    void merge(const Group& other);
  };
  using Strata = std::vector<std::vector<Cluster>>;

  void add_run(std::uint64_t cluster, std::int64_t sequence, std::int32_t task, std::span<const double> lower,
               std::span<const double> upper, std::int64_t stride);
  void close_text();
  AcceptanceEstimate estimate(const Group& group, const Strata& strata) const;

  Group all_;
  std::map<std::int32_t, Group> tasks_;
  ClusterTable clusters_{3};              // lower, upper, count
  std::vector<std::int32_t> open_tasks_;  // those with positions of the open text
  std::uint64_t cluster_ = 0;
  std::int64_t sequence_ = -1;
  bool prompts_ = false;
  bool bracketed_ = false;
  std::int64_t unknown_ = 0;
};

/// Acceptance rates of one recording, in one pass, overall and by task. Memory grows with the number of tasks alone.
///
/// Source:   docs/theory.md#intervals-from-recordings
/// Assumes:  clusters independent; nothing about dependence inside one.
class AcceptanceAccumulator {
 public:
  explicit AcceptanceAccumulator(TaskMix mix = TaskMix::random) : mix_(mix) {}

  /// The next positions of the recording.
  void add(const Observations& observations);
  /// The texts of another one, none of which is here.
  void merge(const AcceptanceAccumulator& other);

  /// From the mean acceptance at each prefix (beta_t for rejection); nothing where no position has one. Positions
  /// without one are left out and counted in a note.
  std::optional<AcceptanceEstimate> from_mean_acceptance() const { return mean_.overall(mix_); }
  /// From the emitted tokens (a_t, at draft depth 1); nothing where no position has one.
  std::optional<AcceptanceEstimate> from_emitted() const { return emitted_.overall(mix_); }
  /// Under one rule, from Observations::by_rule; nothing where no position tells.
  std::optional<AcceptanceEstimate> by_rule(traces::AcceptanceRule rule) const;

  /// By task id; -1 collects positions without a task. Empty where no position has a task.
  std::map<std::int32_t, AcceptanceEstimate> tasks_from_mean_acceptance() const { return mean_.by_task(); }
  std::map<std::int32_t, AcceptanceEstimate> tasks_from_emitted() const { return emitted_.by_task(); }

  std::int64_t positions() const { return positions_; }
  std::int64_t sequences() const { return sequences_; }

 private:
  TaskMix mix_;
  RateAccumulator mean_, emitted_;
  std::array<RateAccumulator, 3> rules_;
  std::int64_t positions_ = 0;
  std::int64_t sequences_ = 0;
  std::int64_t last_sequence_ = -1;
};

}  // namespace specdec::estimate
