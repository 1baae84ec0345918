#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/exact_sum.hpp"
#include "analysis/core/state_archive.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/position_labels.hpp"
#include "analysis/theory/streaming_replay.hpp"

namespace specdec::estimate {

/// The columns that adaptive drafting needs. Shape: each (positions), with one exception.
struct DraftedColumns {
  std::span<const double> acceptance;  // a_t, independent of the depth
  /// The draft's probability of its token if that is accepted, q_t(x_t). Empty if unknown: then there are no
  /// thresholds, and it stays empty for the whole recording.
  std::span<const double> accepted_probability;
  /// The probability that a draft rejected here has a probability below each threshold.
  /// Shape: (thresholds, positions); empty if accepted_probability is
  std::span<const std::vector<double>> rejected_below;
  PositionLabels labels;
};

struct AdaptiveOptions {
  /// The most drafts of a step with fixed gamma, [1, theory::largest_replayed_gamma].
  std::int64_t max_gamma = 16;
  core::StepCost cost;
  /// Thresholds h in (0, 1], in increasing order.
  std::vector<double> thresholds{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  /// The most drafts of a step with a threshold, >= 1, in increasing order: those above max_gamma are not tried;
  /// max_gamma is tried in their place.
  std::vector<std::int64_t> limits{1, 2, 3, 4, 6, 8, 12, 16};
  /// Sequences longer than this are left out of all but the fixed gamma.
  std::int64_t longest_sequence = 1'000'000;
  std::int64_t threads = 1;
};

/// A policy chosen on one half of the clusters and judged on the other (see half_of).
struct JudgedGamma {
  std::int64_t gamma = 0;
  double speedup = 1;
};

struct JudgedThreshold {
  double threshold = 0;
  /// True if the threshold is the lowest or the highest one tried; not for a threshold that amounts to a fixed gamma.
  bool at_grid_edge = false;
  /// The most drafts of a step.
  std::int64_t limit = 1;
  /// Tokens per step, exact.
  double tokens_per_step = 0;
  /// Tokens and steps are exact, and so is the stopping point of a step up to and including its first rejected token. A
  /// step that does not stop there drafts on from a token that is not in the text: one token more at the upper end, up
  /// to the limit at the lower.
  Interval speedup;
  /// Draft tokens per step at the two ends.
  Interval drafted_per_step;
  /// The gain over the fixed gamma: the quotient of the speedups minus 1, at the two ends. Over the sequences that
  /// are not too long.
  Interval gain;
  /// The number of groups, of sequences or of the texts of a prompt, that were judged; several may share one.
  std::int64_t groups = 0;
  /// Interval covering both ends: a ratio of sums over groups, Student's t. Empty if there are fewer than
  /// fewest_judged.
  std::optional<Interval> gain_ci95;
};

/// The fewest groups of independent sequences or prompts for which the uncertainty of a gain is stated.
inline constexpr std::int64_t fewest_judged = 8;

/// The verdict of a recording on drafting by confidence.
enum class ThresholdVerdict { gains, loses, cannot_tell };

/// gains: the whole interval of the gain lies above 0; loses: below 0.
ThresholdVerdict verdict_of(const JudgedThreshold& judged);

struct AdaptiveReport {
  /// The number of sequences that policies were chosen on, and of those that they are judged on. A
  /// single sequence is used for judging only.
  std::int64_t chosen_on = 0;
  std::int64_t judged_on = 0;
  /// Empty if all sequences are in one half.
  std::optional<JudgedGamma> fixed;
  /// Empty in that case too, or if the draft's probabilities are unknown.
  std::optional<JudgedThreshold> threshold;
  std::vector<std::string> notes;
};

/// Policies that choose the length of each draft, over a recording in one pass. The policy stops *after* the token
/// that triggers it and still submits that token: leaving a sampled token out because of its own probability would
/// change the law of the text. Threshold and limit are those whose speedup has the highest lower end on half 0
/// of the clusters (see half_of), in a tie the lowest; they are judged on half 1. The result does not depend on the
/// order of the texts.
///
/// Memory does not depend on the length of the recording, except for one sequence at a time.
/// Source:   docs/theory.md#adaptive-drafting
class AdaptiveDrafting {
 public:
  /// @throws std::domain_error if an option is outside its range
  explicit AdaptiveDrafting(AdaptiveOptions options);

  /// Adds positions, like ReplayEstimates::add.
  /// @throws std::domain_error naming the position if a probability is NaN or outside [0, 1]
  void add(const DraftedColumns& columns);

  /// Ends the last sequence; call it before report().
  void finish();

  /// Adds the texts of another object with the same options, none of which is in this one; both must be finished.
  void merge(const AdaptiveDrafting& other);

  /// Ends the last sequence.
  template <class Archive>
  void exchange(Archive& archive) {
    finish();
    archive(core::fixed_length(policies_), confidence_known_, sequences_, tokens_, tokens_of_policies_,
            core::fixed_length(fixed_cost_), positions_, left_out_);
  }

  /// @param halves  ReplayEstimates::halves() of the same recording, by_position, max_gamma as here or more
  AdaptiveReport report(const std::array<theory::ReplayedRounds, 2>& halves) const;

 private:
  /// The number of groups to which judged clusters are assigned by their keys, for the interval of the gain.
  static constexpr std::size_t groups = 64;

  /// One threshold and limit. Costs of all steps at both ends, in units of plain target steps.
  struct Policy {
    std::size_t threshold = 0;
    std::int64_t limit = 1;
    core::ExactSum chosen_most;
    std::array<core::ExactSum, groups> fewest{}, most{};
    core::ExactSum steps, drafted_fewest, drafted_most;  // over the clusters judged on

    void merge(const Policy& other);
    template <class Archive>
    void exchange(Archive& archive) {
      archive(chosen_most, fewest, most, steps, drafted_fewest, drafted_most);
    }
  };
  struct Text {
    std::size_t half = 0;
    std::size_t group = 0;
    std::vector<double> acceptance;
    std::vector<double> probability;
    std::vector<std::vector<double>> rejected_below;  // (thresholds, positions)
  };
  struct Prices {
    std::vector<double> of;  // costs by the number of drafts of a step
    /// The lowest and the highest cost of a step with more than d and at most `limit` drafts. Shape: (limit + 1, d)
    std::vector<std::vector<Interval>> beyond;
  };
  void begin_sequence(const PositionLabels& labels, std::size_t at);
  void end_sequence();
  void evaluate();
  void follow(const Text& text, Policy& policy) const;
  JudgedThreshold judged(const Policy& policy, std::int64_t fixed_gamma) const;

  AdaptiveOptions options_;
  Prices prices_;
  std::vector<Policy> policies_;
  bool confidence_known_ = true;
  std::array<std::int64_t, 2> sequences_{};  // by half of the clusters
  std::array<double, 2> tokens_{};
  std::array<double, 2> tokens_of_policies_{};                  // without sequences that are too long
  std::vector<std::array<core::ExactSum, groups>> fixed_cost_;  // by gamma, over the clusters judged on
  std::int64_t positions_ = 0;
  std::optional<std::int64_t> current_;
  std::int64_t length_ = 0;  // length of the current sequence
  Text text_;                // the current text, as long as it is short enough
  std::vector<Text> finished_;
  std::size_t finished_positions_ = 0;
  std::array<std::int64_t, 2> left_out_{};  // sequences that are too long, by half
};

}  // namespace specdec::estimate
