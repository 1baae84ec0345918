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

/// An acceptance rate, or its bounds if every position is known only as a bracket.
struct AcceptanceEstimate {
  /// Empty if the positions are known only within brackets.
  std::optional<double> value;
  /// The rates from the lower and the upper ends; both equal `value` if that is known.
  Interval bounds;
  /// Covers both ends; empty if the data do not determine an interval.
  std::optional<Interval> ci95;
  std::string method;
  /// Limitations of the interval, in words: few rejections, a single text or prompt, positions left out.
  std::vector<std::string> notes;
  /// Positions with a value.
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  /// The independent units: prompts, or sequences if the prompts are unknown; buckets of them if there are more
  /// than ClusterTable::most_rows.
  std::int64_t clusters = 0;
  bool prompts = false;
  /// Texts whose prompt is unknown: each counts as a prompt of its own.
  std::int64_t texts_without_prompt = 0;
  /// The number of equal-length clusters that are worth as much, and the degrees of freedom of the interval's t; empty
  /// without an interval over clusters.
  double effective_clusters = 0;
  std::optional<double> degrees_of_freedom;
  /// Empty if there are too few clusters or all have the same length.
  std::optional<LengthDependence> length_dependence;

  /// True if the clusters are so few or so unequal that the interval may cover less than 95%.
  bool few_clusters() const;
  /// Expected rejections, the sum of 1 - a_t (at the middle of each bracket).
  double rejections = 0;
};

/// Below this many expected rejections the interval is never narrower than Wilson's for the effective count.
inline constexpr double few_rejections = 20;
/// Below this many sequences an interval from counters carries a note; below the same number of effective clusters, or
/// of the degrees of freedom that equal-length clusters would give, so does one from a recording.
inline constexpr std::int64_t few_sequences = 16;

/// One rate of one recording: a column of numbers in [0, 1], or of brackets, over its clusters and tasks. The result
/// does not depend on the order of the texts.
class RateAccumulator {
 public:
  /// Adds positions. Shape: lower, upper (positions * stride), of which every stride-th counts; NaN is left out.
  void add(const PositionLabels& labels, std::span<const double> lower, std::span<const double> upper,
           std::int64_t stride = 1);
  /// Adds positions without a value.
  void skip(std::int64_t positions) { unknown_ += positions; }
  /// Adds the texts of another accumulator, none of which is in this one.
  void merge(RateAccumulator other);

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    close_text();
    archive(all_, tasks_, clusters_, prompts_, bracketed_, unknown_);
  }

  std::optional<AcceptanceEstimate> overall() const;
  std::map<std::int32_t, AcceptanceEstimate> by_task() const;
  /// True if some text or prompt is in several tasks; also if too many prompts were seen to know.
  bool tasks_share_clusters() const;

 private:
  /// Sums over the text that may still continue.
  struct Sums {
    double lower = 0, upper = 0, count = 0;
  };
  /// All texts, or those of a task. As long as there is only one text, it is judged by batches, both while it grows
  /// and once it has ended.
  struct Group {
    std::int64_t texts = 0;
    std::int64_t texts_without_prompt = 0;
    StreamingBatches lower_batches, upper_batches;
    ClusterMoments lower_of_first, upper_of_first;
    Sums open;  // sums of a task

    void add_to_first(double low, double high);
    /// Ends a text that has positions.
    void close(bool has_prompt);
    void merge(const Group& other);

    template <class Archive>
    void exchange(Archive& archive) {
      archive(texts, texts_without_prompt, lower_of_first, upper_of_first);
    }
  };

  void add_run(std::uint64_t cluster, std::int64_t sequence, std::int32_t task, std::span<const double> lower,
               std::span<const double> upper, std::int64_t stride);
  void close_text();
  AcceptanceEstimate estimate(const Group& group, const std::vector<Cluster>& clusters) const;

  Group all_;
  std::map<std::int32_t, Group> tasks_;
  ClusterTable clusters_{3};              // lower, upper, count
  std::vector<std::int32_t> open_tasks_;  // tasks with positions in the open text
  std::uint64_t cluster_ = 0;
  std::int64_t sequence_ = -1;
  bool has_prompt_ = false;  // the open text
  bool prompts_ = false;
  bool bracketed_ = false;
  std::int64_t unknown_ = 0;
};

/// Acceptance rates of one recording, in one pass, overall and by task. Memory grows only with the number of tasks.
///
/// Source:   docs/theory.md#intervals-from-recordings
/// Assumes:  independent clusters; any dependence inside one.
class AcceptanceAccumulator {
 public:
  /// Adds the next positions of the recording.
  void add(const Observations& observations);
  /// Adds the texts of another accumulator, none of which is in this one.
  void merge(const AcceptanceAccumulator& other);

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(mean_, emitted_, rules_, positions_, sequences_);
  }

  /// The rate from the mean acceptance at each prefix (beta_t for rejection); empty if no position has one. Positions
  /// without one are left out and counted in a note.
  std::optional<AcceptanceEstimate> from_mean_acceptance() const { return mean_.overall(); }
  /// The rate from the emitted tokens (a_t, at draft depth 1); empty if no position has one.
  std::optional<AcceptanceEstimate> from_emitted() const { return emitted_.overall(); }
  /// The rate under one rule, from Observations::by_rule; empty if no position determines it.
  std::optional<AcceptanceEstimate> by_rule(traces::AcceptanceRule rule) const;

  /// By task id; -1 collects positions without a task. Empty if no position has a task.
  std::map<std::int32_t, AcceptanceEstimate> tasks_from_mean_acceptance() const { return mean_.by_task(); }
  std::map<std::int32_t, AcceptanceEstimate> tasks_from_emitted() const { return emitted_.by_task(); }

  /// True if the tasks' rates are not independent: some text or prompt is in several of them, or may be.
  bool tasks_share_clusters() const { return mean_.tasks_share_clusters() || emitted_.tasks_share_clusters(); }

  std::int64_t positions() const { return positions_; }
  std::int64_t sequences() const { return sequences_; }

 private:
  RateAccumulator mean_, emitted_;
  std::array<RateAccumulator, 3> rules_;
  std::int64_t positions_ = 0;
  std::int64_t sequences_ = 0;
  std::int64_t last_sequence_ = -1;
};

}  // namespace specdec::estimate
