#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/cluster_table.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/position_labels.hpp"
#include "analysis/theory/streaming_replay.hpp"

namespace specdec::estimate {

/// The columns that replay needs, from any batch of positions.
struct AcceptanceColumns {
  /// a_t, shape (positions, depths): Observations::acceptance.lower (or .upper: replay the two ends of a bracket one
  /// by one; more acceptance never takes more steps).
  std::span<const double> acceptance;
  /// A sequence belongs to the task of its first position.
  PositionLabels labels;
};

struct ReplayEstimateOptions {
  theory::ReplayOptions replay;
  /// The costs of steps; without them there are no speedups.
  std::optional<core::StepCost> cost;
  std::int64_t threads = 1;
};

/// The results for one gamma over the whole recording.
struct GammaReplay {
  std::int64_t gamma = 0;
  /// Tokens per step by exact replay of the recorded sequences.
  Estimate tokens_per_step;
  /// Eq. 1 at alpha_hat, and its difference from replay; empty without alpha_hat. The end of the sequences, beyond
  /// which a step yields nothing, is part of the difference.
  std::optional<double> iid_tokens_per_step;
  std::optional<double> difference;
  std::optional<Estimate> speedup;
  std::optional<double> iid_speedup;
  /// Tokens per step if no text ended: 1 + sum over j of the product over i <= j of P(draft i is accepted | all before
  /// it are), drafts behind the end of a text being neither accepted nor rejected (Kaplan and Meier's estimate). For a
  /// whole recording with ReplayOptions::by_position; empty if no text is long enough to look at every draft.
  std::optional<double> unended_tokens_per_step;
  /// Share of the expected steps with fewer than gamma + 1 tokens of their text left. Likewise.
  std::optional<double> share_past_end;
};

/// The fastest gamma of the recording, with its uncertainty. Empty if every text holds one token, so that no draft was
/// looked at.
struct ReplayOptimum {
  std::int64_t gamma = 0;
  double speedup = 1;
  /// Gammas whose mean cost per token differs from the best one's by less than its 95% interval, paired over
  /// clusters (each against the best, no correction for their number); includes the best one. Empty if there is
  /// no interval.
  std::optional<std::vector<std::int64_t>> near_optimal_gammas;
  /// True if the best gamma is the largest one that was replayed.
  bool at_limit = false;
};

/// The largest draft cost c at which some gamma still gains, with the other costs as given; empty if none gains at c =
/// 0.
struct BreakEven {
  double c = 0;
  std::int64_t gamma = 0;
};

struct ReplayReport {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::vector<GammaReplay> gammas;  ///< 0 to max_gamma
  std::optional<ReplayOptimum> optimum;
  std::optional<BreakEven> break_even;  ///< without a cost: for the paper's costs, v = 1 and no overhead
  std::vector<std::string> notes;

  /// Whether some text is long enough for a draft.
  bool looks_at_drafts() const { return tokens > sequences; }
};

/// Memory for the sequences that are replayed concurrently: those of the threads, and the results that wait to be
/// added in order.
inline constexpr std::size_t most_replaying_bytes = std::size_t{64} << 20U;

/// The number of sequences that fit in most_replaying_bytes.
struct ReplayedAtOnce {
  std::int64_t threads = 1;
  std::size_t sequences = 1;
  std::size_t bytes = 0;
};
ReplayedAtOnce replayed_at_once(const theory::ReplayOptions& replay, std::int64_t threads);

/// Exact replay over a whole recording in one pass and bounded memory: the steps of every gamma, kept in a
/// ClusterTable. The result does not depend on the order of the texts. Every step costs as much as gamma drafts, even
/// if the text ends in it, since an engine cannot know that:
///
///   speedup(gamma) = sum of tokens / (sum of steps(gamma) cost(gamma))
///
/// Intervals: that of a speedup is that of the tokens per step over the cost of a step. They are ratios of sums over
/// the clusters with Student's t, bounded by 1 and by what the lengths T of the recorded texts allow,
/// max over the texts of T / ceil(T / (gamma + 1)); a single sequence uses means of batches; texts of one token each
/// give none. With fewer than few_rejections expected rejections, or acceptances, they are never narrower than Eq. 1 at
/// the ends of Wilson's interval of the acceptance rate, within the same bounds; otherwise clusters without any
/// variation give no interval.
///
/// Source:   docs/theory.md#the-best-gamma-of-a-recording
class ReplayEstimates {
 public:
  /// @throws std::domain_error if an option is outside its range
  explicit ReplayEstimates(ReplayEstimateOptions options);

  /// Adds the next positions of the recording; a sequence may continue in the next call.
  /// @throws std::domain_error naming the position (counted over the recording) if an acceptance is NaN or outside
  ///   [0, 1]
  /// @throws std::invalid_argument if sizes disagree
  void add(const AcceptanceColumns& columns);

  /// Adds the texts of another object with the same options, none of which is in this one; both must be finished.
  void merge(const ReplayEstimates& other);

  /// Ends the last sequence and the recording; call it before the reports.
  void finish();

  /// Ends the last sequence.
  template <class Archive>
  void exchange(Archive& archive) {
    finish();
    archive(halves_, clusters_, prompts_, positions_, sequences_, longest_, most_tokens_, cells_);
    archive.require(positions_ >= 0 && sequences_ >= 0 && longest_ >= 0 && cells_.size() <= most_cells);
    const auto gammas = static_cast<std::size_t>(options_.replay.max_gamma) + 1;
    archive.require(most_tokens_.size() == gammas);
    for (const Group& cell : cells_) archive.require(cell.steps.size() == gammas);
  }

  /// Reports end at this gamma, in [1, max_gamma], since the recording tells nothing of longer drafts.
  /// @throws std::domain_error outside that range
  void end_at(std::int64_t gamma);

  /// @param alpha_hat  the rate for the i.i.d. figures
  ReplayReport report(std::optional<double> alpha_hat = {}) const;
  /// The same for each task's sequences; -1 collects those without a task.
  std::map<std::int32_t, ReplayReport> by_task(const std::map<std::int32_t, double>& alpha_hat = {}) const;

  /// [j - 1] = P(draft j is accepted | all before it are) at the largest gamma: a ratio of sums over the clusters,
  /// with Student's t and within [0, 1]; empty if no draft was examined. No entries without ReplayOptions::by_position.
  std::vector<std::optional<Estimate>> conditional_acceptance() const;

  /// Totals of all steps, for each half_of the clusters.
  std::array<theory::ReplayedRounds, 2> halves() const { return {halves_[0].value(), halves_[1].value()}; }
  /// Totals over all clusters.
  theory::ReplayedRounds total() const;

  /// The totals of one cluster or of several, for each gamma.
  struct Group {
    std::int64_t sequences = 0;
    double tokens = 0;
    double rejections = 0;      // sum of 1 - a_t, the mean over its depths
    std::vector<double> steps;  // (gammas)

    template <class Archive>
    void exchange(Archive& archive) {
      archive(sequences, tokens, rejections, steps);
    }
  };

 private:
  static constexpr std::size_t most_cells = 512;

  void begin_sequence(const PositionLabels& labels, std::size_t at);
  void end_sequence();
  void add_to_current(std::span<const double> acceptance);
  void add_whole(const AcceptanceColumns& columns, std::span<const std::size_t> begins);
  void count(const theory::ReplayedRounds& rounds, double rejections);
  std::string units() const;
  Group group_of(const Cluster& cluster) const;
  std::vector<Group> groups_of(const std::vector<Cluster>& clusters) const;
  void cover_first(std::int64_t tokens);
  std::vector<Group> batches_of_only_sequence() const;

  ReplayEstimateOptions options_;
  theory::StreamingReplay stream_;
  std::array<theory::ReplayedTotal, 2> halves_;
  /// Tokens and rejections; steps of each gamma; accepted and examined drafts of each position.
  ClusterTable clusters_;
  bool prompts_ = false;
  /// The largest gamma of the reports.
  std::int64_t last_gamma_;

  std::int64_t positions_ = 0;
  std::int64_t sequences_ = 0;  // number of sequences begun
  std::int64_t longest_ = 0;    // tokens of the longest text
  /// [gamma]: the largest tokens per step that the length of some text allows.
  std::vector<double> most_tokens_;
  std::optional<std::int64_t> current_;
  std::int32_t current_task_ = -1;
  std::uint64_t current_cluster_ = 0;
  double current_rejections_ = 0;

  /// Consecutive 64-token blocks of the first sequence, as long as it is the only one.
  std::vector<Group> cells_;
  std::int64_t cell_tokens_ = theory::StreamingReplay::block;
};

}  // namespace specdec::estimate
