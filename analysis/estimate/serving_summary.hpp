#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/round_moments.hpp"
#include "traces/serving/serving_counts.hpp"
#include "traces/trace_metadata.hpp"

/// From what servers count to acceptance with intervals: docs/theory.md#acceptance-from-counters.
namespace specdec::estimate {

/// What the intervals of a group rest on.
enum class IntervalBasis {
  none,         ///< nothing was counted that an interval could come from
  iid_rounds,   ///< one cluster: rounds taken as independent, a lower bound on the width
  clusters,     ///< requests, runs or instances, taken as independent
  batch_means,  ///< consecutive windows of time, taken together in few batches
};

/// "none", "iid_rounds", "clusters", "batch_means".
std::string_view name_of(IntervalBasis basis);

/// alpha_hat, or what the counts leave of it.
struct CountedRate {
  /// Nothing where the counts only bound it.
  std::optional<double> value;
  /// Both are `value` where that is known.
  Interval bounds;
  /// 95% interval on the basis that the group has; covers both bounds. Nothing without a basis.
  std::optional<Interval> ci95;
  /// Rounds taken as independent (Clopper and Pearson), and the same at a design effect of 3: with a third of the
  /// trials.
  std::optional<Interval> ci95_iid_rounds, ci95_design_effect_3;
  /// "censored_geometric", "moment_inversion" or "bounds".
  std::string estimator;
  /// "iid_rounds", "clusters", "batch_means", "none".
  std::string method;
};

/// What was counted at one place in the draft, j = 1, 2, ...; for a tree, at one depth.
struct PositionAcceptance {
  std::int64_t position = 0;
  /// Rounds whose draft here was accepted.
  double accepted = 0;
  /// Rounds in which the draft here was looked at: it was made, and all before it were accepted.
  std::optional<double> evaluated;
  /// Unconditional: accepted / rounds, of all rounds whatever they drafted.
  Estimate survival;
  /// accepted / evaluated; nothing where that is unknown or 0.
  std::optional<Estimate> conditional;
};

/// Whether one rate for all positions fits, and what it would cost to assume it. Positions that few rounds reach are
/// taken together, so that in each cell of the test one rate expects at least 5 accepted drafts and 5 rejected ones.
///
///   chi-square = sum over cells (accepted - alpha_hat looked at)^2 / (looked at alpha_hat (1 - alpha_hat))
///
/// Source:   Pearson 1900; the least expected counts: Cochran 1954
struct HomogeneityTest {
  double chi_square = 0;
  /// Cells less one, >= 1.
  std::int64_t degrees_of_freedom = 0;
  /// P(chi-square at least this large | one rate, independent rounds). Dependent rounds make it too small.
  double p_value = 1;
  /// Tokens per step as counted, and by alpha_hat at the same gamma(s).
  double tokens_per_step_observed = 1;
  double tokens_per_step_constant = 1;
};

/// What was counted of one model (and label), summed over everything else.
struct ServingSummary {
  /// Empty where nothing named it.
  std::string model_name;
  /// Value of the label that was asked for; nothing where the model alone groups.
  std::optional<std::string> group;
  /// In order of appearance, each once.
  std::vector<std::string> engines, formats, files;
  /// What a unit was; nothing where units of several kinds were summed (warning "mixed_units").
  std::optional<traces::CountUnit> unit;
  std::int64_t units = 0;
  /// Units or batches of windows that the intervals rest on.
  std::int64_t clusters = 0;
  IntervalBasis basis = IntervalBasis::none;
  /// Only means over rounds of unknown number were given: tokens per step are the mean of these.
  bool unweighted_means = false;
  /// Some counts were computed back from rounded rates.
  bool from_rates = false;

  /// Nothing where unknown, or where units differ (warning "mixed_rules").
  std::optional<traces::AcceptanceRule> rule;
  /// unknown where units differ (warning "mixed_shapes").
  traces::DraftShape shape = traces::DraftShape::unknown;
  /// The gamma of every round; nothing where it is unknown or varies.
  std::optional<std::int64_t> gamma;
  /// Longest draft, for a tree its depth; nothing where unknown.
  std::optional<std::int64_t> longest_draft;
  /// Target positions a round, the root included, where it is a tree.
  std::optional<double> verified_per_round;
  /// True where every round is known to have drafted `gamma` tokens.
  bool fixed_length = false;

  /// Sums over the units that give them (warning "counts_missing" where some do not); nothing where none does.
  std::optional<double> rounds, drafted, accepted, emitted;
  /// [j] = rounds with exactly j accepted drafts; empty where unknown.
  std::vector<double> rounds_by_accepted;
  /// [length] = rounds that drafted so many tokens; empty where unknown.
  std::vector<double> rounds_by_drafted;
  /// By length of the draft: [length][j]; empty where the two were not counted together.
  std::map<std::int64_t, std::vector<double>> rounds_by_accepted_and_drafted;

  std::vector<PositionAcceptance> positions;
  /// 1 + accepted / rounds, the bonus token included, in [1, longest_draft + 1]; nothing without rounds.
  std::optional<Estimate> tokens_per_step;
  /// accepted / drafted, which is not alpha: drafts behind a rejection count as drafted and are never looked at.
  std::optional<Estimate> draft_acceptance_rate;
  /// Round-weighted: rounds start after rejections, so hard stretches count more than their share of the text.
  /// Nothing for a tree, for an unknown shape, or where no draft was looked at.
  std::optional<CountedRate> alpha_hat;
  std::optional<HomogeneityTest> homogeneity;
  /// Variance over clusters / variance of independent rounds, of tokens per step; nothing with fewer than 2 clusters.
  std::optional<double> design_effect;

  /// Of the units that tell which drafts were looked at: sums and covariances by position.
  RoundMoments moments;
  std::vector<Note> warnings;
};

struct ServingSummaryOptions {
  /// Groups by the value of this label besides the model's name; "file" groups by file. Empty: by the model alone.
  std::string by;
  /// Says that every round was a chain of this many drafts, >= 1, where the counts do not say it themselves.
  std::optional<std::int64_t> gamma;
  /// Says that drafts were trees.
  bool tree = false;
};

/// Why accepted / drafted is not alpha, in a sentence.
inline constexpr std::string_view draft_acceptance_rate_note =
    "accepted / drafted is not alpha: drafts behind a rejection count as drafted, but are never looked at, so it falls "
    "with the length of the draft while alpha does not";

/// Sums units of counts by group, in one pass; memory grows with the number of groups and of series of windows (told
/// apart by their labels), not with the number of units.
class ServingSummaries {
 public:
  explicit ServingSummaries(ServingSummaryOptions options = {});
  ~ServingSummaries();
  ServingSummaries(ServingSummaries&&) noexcept;
  ServingSummaries& operator=(ServingSummaries&&) noexcept;

  /// @throws traces::FileError if the counts contradict each other: more accepted than drafted, a histogram that sums
  ///         to something else than the rounds, a draft longer than gamma; with file and line
  void add(const traces::ServingCounts& counts);

  /// Summaries so far, sorted by model and group.
  std::vector<ServingSummary> summaries() const;

 private:
  struct Groups;
  std::unique_ptr<Groups> groups_;
};

}  // namespace specdec::estimate
