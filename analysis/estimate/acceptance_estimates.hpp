#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"
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
  /// What limits the interval, in words: few sequences, few rejections, positions left out.
  std::vector<std::string> notes;
  /// Positions with a value.
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
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
/// Below this many sequences an interval is given with a note.
inline constexpr std::int64_t few_sequences = 16;

/// One rate of one recording: a column of numbers in [0, 1], or of brackets, over its sequences and tasks.
class RateAccumulator {
 public:
  /// The next positions. Shape: lower, upper (positions * stride), of which every stride-th counts; NaN is left out.
  /// @param task  empty where there are none
  void add(std::span<const std::int64_t> sequence, std::span<const std::int32_t> task, std::span<const double> lower,
           std::span<const double> upper, std::int64_t stride = 1);
  /// The next positions, none of which has a value.
  void skip(std::int64_t positions) { unknown_ += positions; }

  std::optional<AcceptanceEstimate> overall(TaskMix mix) const;
  std::map<std::int32_t, AcceptanceEstimate> by_task() const;

 private:
  /// Sums over the sequence that may still go on.
  struct Sums {
    double lower = 0, upper = 0, count = 0;
  };
  /// Clusters of one group: all sequences, or those of a task.
  struct Group {
    ClusterMoments lower, upper;
    // Of the first sequence, which is judged by batches while it is the only one: as it grows, and once it has ended.
    StreamingBatches lower_batches, upper_batches;
    ClusterMoments lower_of_first, upper_of_first;
    Sums open;

    /// In the order of the positions, whatever the batches: sums do not depend on the cuts.
    void add(double low, double high);
    void close();
    AcceptanceEstimate estimate(bool bracketed, std::span<const ClusterMoments> lower_strata,
                                std::span<const ClusterMoments> upper_strata) const;
  };
  void add_run(std::int64_t sequence, std::int32_t task, std::span<const double> lower, std::span<const double> upper,
               std::int64_t stride);
  void close_sequence();

  Group all_;
  std::map<std::int32_t, Group> tasks_;
  std::vector<std::int32_t> open_tasks_;  // those with positions of the open sequence
  std::int64_t sequence_ = -1;
  bool bracketed_ = false;
  std::int64_t unknown_ = 0;
};

/// Acceptance rates of one recording, in one pass, overall and by task. Memory grows with the number of tasks alone.
///
/// Source:   docs/theory.md#intervals-from-recordings
/// Assumes:  sequences independent; nothing about dependence inside one.
class AcceptanceAccumulator {
 public:
  explicit AcceptanceAccumulator(TaskMix mix = TaskMix::random) : mix_(mix) {}

  /// The next positions of the recording.
  void add(const Observations& observations);

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
