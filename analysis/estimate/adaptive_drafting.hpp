#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/task_halves.hpp"
#include "analysis/theory/streaming_replay.hpp"

namespace specdec::estimate {

/// What a confidence policy compares with its threshold h after each drafted token x_t.
enum class Confidence {
  token,            ///< q_t(x_t)
  running_product,  ///< the product of q(x) over the drafts of the step so far
};

/// The columns that adaptive drafting needs. Shape: each (positions).
struct DraftedColumns {
  std::span<const double> acceptance;  ///< a_t, not depending on the depth
  std::span<const double> draft_token_probability;
  std::span<const std::int64_t> sequence;
  /// Task of each position, empty where there are none; a sequence belongs to the task of its first position.
  std::span<const std::int32_t> task = {};
};

struct AdaptiveOptions {
  /// The most drafts of a step, [1, theory::largest_replayed_gamma].
  std::int64_t max_gamma = 16;
  core::StepCost cost;
  /// Thresholds h in (0, 1], rising.
  std::vector<double> thresholds{0.01, 0.02, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3,  0.35, 0.4, 0.45,
                                 0.5,  0.55, 0.6,  0.65, 0.7,  0.75, 0.8,  0.85, 0.9,  0.95};
  /// Sequences longer than this are left out of the known-acceptance program.
  std::int64_t longest_program = 1'000'000;
  std::int64_t threads = 1;
};

/// A policy found on the first half of the sequences and judged on the second (see TaskHalves).
struct JudgedGamma {
  std::int64_t gamma = 0;
  double speedup = 1;
};

struct JudgedThreshold {
  Confidence confidence = Confidence::token;
  double threshold = 0;
  /// The threshold is the lowest or the highest that was tried: one outside the grid may do better.
  bool at_grid_edge = false;
  /// Exact.
  double tokens_per_step = 0;
  /// Tokens and steps are exact. What the draft does behind a rejected token is not recorded: the upper end stops
  /// there, the lower end drafts on to max_gamma.
  Interval speedup;
  /// Draft tokens per step at the two ends.
  Interval drafted_per_step;
};

/// Someone who sees the future: a bound, no policy. Over the sequences that policies are judged on.
struct Bound {
  double speedup = 1;
  std::int64_t sequences = 0;
  /// Sequences that were too long for it.
  std::int64_t left_out = 0;
};

struct AdaptiveReport {
  /// Sequences that policies were chosen on, and those that they and the bounds are judged on. A single sequence is
  /// judged on only.
  std::int64_t chosen_on = 0;
  std::int64_t judged_on = 0;
  /// Nothing where there is a single sequence.
  std::optional<JudgedGamma> fixed;
  std::optional<JudgedThreshold> token;
  std::optional<JudgedThreshold> running_product;
  /// Bounds what fixes the length of a step before its drafts are seen. A policy that sees a rejected draft can stop at
  /// it, so that the upper end of a threshold may lie above. Nothing where every sequence was too long.
  std::optional<Bound> known_acceptance;
  /// Bounds them all where an accepted draft costs no more than the plain step that it saves.
  std::optional<Bound> outcome_oracle;
  std::vector<std::string> notes;
};

/// Policies that choose the length of each draft, over a recording in one pass. The policy stops *after* the token
/// that trips it and submits it all the same: leaving a sampled token out because of its own probability would
/// change the law of the text. The threshold is the one of the grid whose speedup has the highest lower end on the
/// first of the TaskHalves, the lowest such one; it is judged on the second. By the upper end the lowest threshold
/// would nearly always win, since that end charges nothing for the drafts behind a rejected token.
///
/// Source:   docs/theory.md#adaptive-drafting
class AdaptiveDrafting {
 public:
  /// @throws std::domain_error if an option is outside its range
  explicit AdaptiveDrafting(AdaptiveOptions options);
  AdaptiveDrafting(AdaptiveDrafting&&) noexcept;
  ~AdaptiveDrafting();

  /// As ReplayEstimates::add.
  /// @throws std::domain_error naming the position if a probability is NaN or outside [0, 1]
  void add(const DraftedColumns& columns);

  /// Ends the last sequence; call it once, before the report.
  void finish();

  /// @param halves  ReplayEstimates::halves() of the same recording, by_position, max_gamma as here or more
  AdaptiveReport report(const std::array<theory::ReplayedRounds, 2>& halves) const;

 private:
  class Policy;

  /// Sums over the sequences whose program was solved.
  struct Programs {
    core::CompensatedSum cost;
    double tokens = 0;
    std::int64_t sequences = 0;
    std::int64_t left_out = 0;
  };
  /// The acceptances of a sequence that has ended.
  struct Finished {
    std::size_t half;
    std::vector<double> acceptance;
  };

  void begin_sequence(std::int64_t number, std::int32_t task);
  void end_sequence();
  void flush();
  void solve_programs();

  AdaptiveOptions options_;
  std::vector<std::unique_ptr<Policy>> policies_;  // the thresholds of `token`, then those of `running_product`
  TaskHalves halves_;
  std::array<double, 2> tokens_{};  // by half
  std::int64_t positions_ = 0;
  std::optional<std::int64_t> current_;
  std::size_t half_ = 0;  // of the current sequence

  // Positions that the policies have not seen yet.
  std::vector<double> acceptance_;
  std::vector<double> probability_;
  std::vector<std::uint8_t> half_of_;
  std::vector<std::uint8_t> last_;  // 1 at the end of a sequence

  std::vector<double> sequence_;    // the current one, as long as it is short enough for the program
  std::vector<Finished> finished_;  // sequences whose program was not solved yet
  std::size_t finished_positions_ = 0;
  std::int64_t length_ = 0;             // of the current sequence
  std::array<Programs, 2> programs_{};  // by half; in the first that of the recording's first sequence alone
};

}  // namespace specdec::estimate
