#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/acceptance_trend.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/label_groups.hpp"
#include "analysis/estimate/round_moments.hpp"
#include "traces/serving/serving_counts.hpp"
#include "traces/trace_metadata.hpp"

/// From server counters to acceptance with intervals: docs/theory.md#acceptance-from-counters.
namespace specdec::estimate {

/// The basis of a group's intervals.
enum class IntervalBasis {
  none,         ///< nothing was counted that could give an interval
  iid_rounds,   ///< one cluster: rounds taken as independent, a lower bound on the width
  clusters,     ///< requests, runs or instances, taken as independent
  batch_means,  ///< consecutive windows of time, merged into few batches
};

/// "none", "iid_rounds", "clusters", "batch_means".
std::string_view name_of(IntervalBasis basis);

/// alpha_hat, or its bounds if the counts do not determine it.
struct CountedRate {
  /// Empty if the counts only bound it.
  std::optional<double> value;
  /// Both equal `value` if that is known.
  Interval bounds;
  /// 95% interval on the basis that the group has; covers both bounds. Empty without a basis.
  std::optional<Interval> ci95;
  /// "censored_geometric", "moment_inversion" or "bounds".
  std::string estimator;
  /// "iid_rounds", "clusters", "batch_means", "none".
  std::string method;
};

/// Counts at one position of the draft, j = 1, 2, ...; for a tree, at one depth.
struct PositionAcceptance {
  std::int64_t position = 0;
  /// Rounds whose draft here was accepted.
  double accepted = 0;
  /// Rounds in which the draft here was examined: it was made, and all before it were accepted.
  std::optional<double> evaluated;
  /// Unconditional: accepted / rounds, of all rounds whatever they drafted.
  Estimate survival;
  /// accepted / evaluated; empty if that is unknown or 0.
  std::optional<Estimate> conditional;
};

/// The counts of one model (and label), summed over everything else.
struct ServingSummary {
  /// Empty if nothing named it.
  std::string model_name;
  /// Value of the requested label; empty if counts are grouped by model alone.
  std::optional<std::string> group;
  /// In order of appearance, each once.
  std::vector<std::string> engines, formats, files;
  /// The kind of a unit; empty if units of several kinds were summed (warning "mixed_units").
  std::optional<traces::CountUnit> unit;
  std::int64_t units = 0;
  /// Units, or batches of windows, behind the intervals.
  std::int64_t clusters = 0;
  IntervalBasis basis = IntervalBasis::none;
  /// True if only means over unknown numbers of rounds were given: tokens per step are the mean of these, each taken to
  /// be over 40 rounds (SGLang's log interval at one request), which says how far rounds that are alike leave it.
  bool unweighted_means = false;
  /// True if some counts were computed from rounded rates.
  bool from_rates = false;

  /// ServingCounts::draft_method; empty if units differ.
  std::string draft_method;
  /// Empty if unknown, or if units differ (warning "mixed_rules").
  std::optional<traces::AcceptanceRule> rule;
  /// `unknown` if units differ (warning "mixed_shapes").
  traces::DraftShape shape = traces::DraftShape::unknown;
  /// The gamma of every round; empty if it is unknown or varies.
  std::optional<std::int64_t> gamma;
  /// Longest draft, for a tree its depth; empty if unknown.
  std::optional<std::int64_t> longest_draft;
  /// Target positions per round, the root included, for a tree.
  std::optional<double> verified_per_round;

  /// Sums over the units that give them (warning "counts_missing" if some do not); empty if none does.
  std::optional<double> rounds, drafted, accepted, emitted;
  /// Passes of the target behind the first token of each request, with a draft and without; empty if some units do not
  /// tell them.
  std::optional<double> steps;
  /// [j] = rounds with exactly j accepted drafts; empty if unknown.
  std::vector<double> rounds_by_accepted;
  /// [length] = rounds that drafted this many tokens; empty if unknown.
  std::vector<double> rounds_by_drafted;
  /// By length of the draft: [length][j]; empty if the two were not counted together.
  std::map<std::int64_t, std::vector<double>> rounds_by_accepted_and_drafted;

  std::vector<PositionAcceptance> positions;
  /// 1 + accepted / rounds, the bonus token included, in [1, longest_draft + 1]; empty without rounds.
  std::optional<Estimate> tokens_per_step;
  /// accepted / drafted, which is not alpha: drafts behind a rejection count as drafted but are never examined.
  std::optional<Estimate> draft_acceptance_rate;
  /// Weighted by rounds: rounds start after rejections, so hard stretches count more than their share of the text.
  /// Empty for a tree, for an unknown shape, or if no draft was examined.
  std::optional<CountedRate> alpha_hat;
  /// Tokens per step of rounds of these lengths with alpha_hat at every position, to be held against those counted;
  /// empty unless every unit counts the drafts looked at.
  std::optional<double> tokens_by_one_rate;
  /// Variance over clusters / variance of independent rounds, for tokens per step; empty with fewer than 2 clusters.
  std::optional<double> design_effect;

  /// Changes over the record, as far as units are enough to show them: whether one stands() or not.
  std::vector<AcceptanceTrend> trends;

  /// Sums and errors by position, over the units that count the examined drafts.
  RoundMoments moments;
  std::vector<Note> warnings;
};

struct ServingSummaryOptions {
  /// The label whose values, or ranges of them, form groups besides the model's name; "file" groups by file. If empty,
  /// by the model alone.
  LabelGroups by = {};
  /// States that every round was a chain of this many drafts, >= 1, if the counts do not say so themselves.
  std::optional<std::int64_t> gamma;
  /// States that drafts were trees.
  bool tree = false;
};

/// The value that counts are grouped by: that of the label, the file for "file", empty without a label.
std::string_view label_value(const traces::ServingCounts& counts, const LabelGroups& by);

/// The reason why accepted / drafted is not alpha, in a sentence.
inline constexpr std::string_view draft_acceptance_rate_note =
    "accepted / drafted is not alpha: drafts behind a rejection count as drafted, but are never looked at, so it falls "
    "with the length of the draft while alpha does not";

/// True for a mean of drafted tokens a round that drafts of one length have, at most 0.02 from a whole number.
bool is_one_length(double mean);

/// What a change says in one sentence, and the warning of one that stands.
std::string text_of(const AcceptanceTrend& trend);
inline constexpr std::string_view acceptance_changes = "acceptance_changes";

/// The warning of counts in which no draft was accepted at all, and what makes it so.
inline constexpr std::string_view draft_never_accepted = "draft_never_accepted";
inline constexpr std::string_view causes_of_rejection =
    "check that the draft was loaded, belongs to this target and its tokenizer, and sees the hidden states it was "
    "trained on; a wrong chat template or another release's weights do the same";

/// The warning of a unit that has two figures of one thing which contradict each other.
inline constexpr std::string_view figures_contradict = "figures_contradict";

/// The warnings of counts whose drafts are of several lengths.
inline constexpr std::string_view drafts_end_early = "drafts_end_early", alpha_is_bounded = "alpha_bounded";

/// Sums units of counts by group, in one pass; memory grows with the number of groups and of series of windows
/// (distinguished by their labels), not with the number of units.
class ServingSummaries {
 public:
  explicit ServingSummaries(ServingSummaryOptions options = {});
  ~ServingSummaries();
  ServingSummaries(ServingSummaries&&) noexcept;
  ServingSummaries& operator=(ServingSummaries&&) noexcept;

  /// @throws traces::FileError if the counts contradict each other: more accepted than drafted, a histogram whose sum
  ///         differs from the rounds, a draft longer than gamma; with file and line
  void add(const traces::ServingCounts& counts);

  /// The summaries so far, sorted by model and group.
  std::vector<ServingSummary> summaries() const;

 private:
  struct Groups;
  std::unique_ptr<Groups> groups_;
};

}  // namespace specdec::estimate
