#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/cost/round_priors.hpp"

namespace specdec::cost {

/// Codes of the findings that all rounds with drafts have as many, that more drafts made a round cheaper, and that no
/// run was without them.
inline constexpr std::string_view rounds_of_one_gamma = "rounds_of_one_gamma";
inline constexpr std::string_view rounds_fall_with_gamma = "rounds_fall_with_gamma";
inline constexpr std::string_view no_plain_runs = "no_plain_runs";

/// The rounds of one run as an outsider sees them; gamma, batch and context are the run's means. No figure may exceed
/// 1e12, nor a positive one be below 1e-12.
struct ObservedRound {
  /// Names the run in messages.
  std::string name = {};
  /// Drafted tokens per sequence, >= 0; 0 for a run without speculation, the depth of a tree.
  double gamma = 0;
  /// Sequences decoded together, > 0.
  double batch = 1;
  /// Tokens in the cache per sequence, >= 0; empty if the run does not say.
  std::optional<double> context = {};
  /// > 0
  double seconds = 0;
  /// > 0; a run that counts for more, or was longer: the variance of its error is divided by it.
  double weight = 1;
  /// Prompt tokens of other requests that the server reads meanwhile, per round, >= 0.
  double prompt_tokens = 0;
  /// Set where drafts were trees.
  std::optional<DraftTree> tree = {};
  /// Names the start of the server that ran it; empty where nothing tells: runs of two starts are no repeats.
  std::string server = {};
};

/// The parts that a round's time is made of, in this order everywhere. With N = (gamma + 1) batch,
/// D = draft_passes(kind, gamma) and M = D but for mirrored drafts, whose longest pass makes it 2 gamma + 1; of a tree
/// gamma is its depth, N = verified batch, and each pass but the first runs over top_k sequences, M = 1 + (D - 1)
/// top_k:
///
///   seconds = iteration (1 + (N / knee)^3)^(1/3) + sequence batch + context_token batch context
///             + [gamma > 0] (round + sequence_of_round batch)
///             + draft gamma + drafted_token M batch + verified_token N + experts (1 - exp(-N / expert_tokens))
///             + prompt_token (prompt tokens of others read per round)
///
/// What a draft takes whatever the batch is a pass of the draft model, and else what verifying one more token takes.
/// The last two are no times: the total tokens of a round from which on the iteration grows with them, and those that
/// meet 63% of a layer's experts, which are read one by one.
inline constexpr std::size_t cost_terms = 12;
/// Seconds of an iteration, per sequence, per context token, per speculative round, per sequence of a round, per draft,
/// per drafted token, per verified token, of all experts, per prompt token; knee and experts in tokens.
using CostTerms = std::array<double, cost_terms>;

struct Place;
class RoundPosterior;

struct FitOptions {
  DraftKind kind = DraftKind::model;
  /// Whether the target is a mixture of experts; empty where nothing tells.
  std::optional<bool> experts = {};
  /// The families that servers come from; usual_rounds(kind, experts) if empty.
  std::vector<RoundPrior> priors = {};
  std::size_t replicates = 1000;
  std::uint64_t seed = 0;
  /// Standard deviation of ln(measured / true) that is taken of a run, (0, 1], and how many runs it takes to outweigh
  /// that, and how far servers differ, by what these runs show, > 0.
  double usual_error = 0.02;
  double usual_error_degrees = 4;
  /// Whether the engine is llama.cpp, whose kernel changes with the tokens of a pass.
  bool has_kernel_step = false;
  /// Mean drafted tokens of a round of at most gamma, [0, gamma]: the gamma of all formulas, where drafts may be
  /// shorter or missing; gamma itself if empty.
  std::function<double(double gamma)> mean_drafts = {};
  /// Prompt tokens of other requests per round, >= 0, where rounds are asked for; none if empty.
  std::function<double(const RoundPoint&)> prompt_tokens = {};
  /// Ways in which the runs' seconds may be others all at once, as where tokens per step that no run says made them of
  /// seconds per token: of each way the logarithms of the factors, one for each run. Replicates are drawn in them in
  /// proportion to how probable the runs are in each: FittedCost::factors_of_replicates().
  std::vector<std::vector<double>> log_factors = {};
};

/// Where runs were.
struct FittedRanges {
  Range gammas, batches;
  /// Empty if no run says one.
  std::optional<Range> contexts;
};

/// Seconds of a round from what observed runs took and from what is usual. With terms t and a residual g,
///
///   ln seconds = ln terms(t) + g(gamma, batch, context) + noise
///
/// where ln t has a normal prior in each family of servers (usual shares of the iteration, with their spread among
/// published servers; the iteration itself has none), g is a Gaussian process over ln batch, ln(gamma + 1) and
/// ln(context + 500), apart for plain and speculative rounds and with a level of its own for each tree and, in
/// llama.cpp, beyond the tokens at which its kernel changes, and the noise
/// is a run's usual error. A family's share of the replicates is its share of servers times the density of the runs in
/// it, linearised at its most probable terms. A run without a context is taken at the mean of the others; where none
/// says one, the term is left out and every context costs the same.
///
/// Replicates are servers as they may be, without another run's error: each draws t and g from their law given the
/// runs, by a fit to a perturbed copy of the runs and priors. round() is their median. No round with drafts is priced
/// below its plain step, unless runs are impossible(). How large the errors of runs are, and how far the server is from
/// usual ones, is drawn with it: errors of 1/2, 1, 2 or 4 times those that are usual, terms and residual that spread 1,
/// 2 or 4 times as far, each with the density of the runs in it and an inverse chi-square law of d degrees of freedom
/// about 1 for its square. So an interval grows with the distance from the runs, and with the errors made.
///
/// Source:   Rasmussen and Williams 2006, section 2.7; Bardsley et al. 2014; Wilson et al. 2020;
///           docs/theory.md#cost-of-a-round
class FittedCost final : public RoundCost {
 public:
  /// @param runs  at least one
  /// @throws std::invalid_argument if runs is empty
  /// @throws std::domain_error if a value of a run is outside its range
  FittedCost(std::span<const ObservedRound> runs, const FitOptions& options);

  std::string_view name() const override { return "fitted"; }
  bool in_seconds() const override { return true; }
  DraftKind kind() const override { return options_.kind; }
  /// draft: the terms of drafting; overhead: those of a speculative round; target: the others. The residual multiplies
  /// all of them.
  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  /// What such a run is expected to take; its own seconds do not matter.
  double seconds(const ObservedRound& of) const;
  /// The same fit as the price of a tree: rounds of gamma = its depth are the tree's, and other drafts have no price.
  /// Replicates of both belong together. Beyond the batches at which this tree ran, it extrapolates.
  /// @param prompt_tokens  as in FitOptions
  std::shared_ptr<const FittedCost> of_tree(const DraftTree& tree,
                                            std::function<double(const RoundPoint&)> prompt_tokens = {}) const;
  /// Outside the ranges of gamma, batch and context over the runs by more than 5%; also where the batch is further than
  /// a factor of 1.25 from those of the runs of its kind, plain or with drafts: fewer requests decode where they draft.
  /// Where no plain run is, plain rounds have no such bound.
  bool extrapolates(const RoundPoint& point) const override;
  /// Whether what drafting takes is known to 10% of the round.
  bool parts_known(const RoundPoint& point) const override;
  double usual_context() const override { return usual_context_; }
  std::size_t replicates() const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;
  std::span<const Note> findings() const override { return findings_; }
  /// Rounds that took less than a plain step beside them by more than runs differ.
  std::string impossible() const override { return impossible_; }

  /// The row of FitOptions::log_factors of each replicate; 0 where there are none.
  std::span<const std::size_t> factors_of_replicates() const;
  /// Their median factor of each run, by which findings take the runs' seconds.
  std::span<const double> usual_factors() const { return usual_factors_; }
  /// Standard deviation of ln(measured / true) of one more run: the root of the mean square over replicates.
  double run_error() const;
  /// Batches and contexts of the runs that drafted, or of those that did not, or of all where there is none of them;
  /// gammas of all, since those between plain decoding and the shortest draft lie between runs.
  FittedRanges ranges(bool drafting) const;
  /// Correlation of the residual at two places, both plain or both with drafts, [0, 1]; 0 for one of each.
  static double correlation(const RoundPoint& a, const RoundPoint& b);
  /// Standard deviation of the logarithm of what a change of kernels between two places costs; 0 where there is none.
  double step_between(const RoundPoint& a, const RoundPoint& b) const;

 private:
  Place place_of(const RoundPoint& point) const;
  /// The median over replicates, where there are some.
  double middle(const Place& at, const Place& plain) const;
  void check_physics(std::span<const ObservedRound> runs);
  /// A round holds a pass of the target.
  void check_plain_steps(std::span<const ObservedRound> runs);
  /// Rounds of one gamma do not tell what a draft takes.
  void check_gammas(std::span<const ObservedRound> runs);
  /// More drafts make no round cheaper.
  void check_order(std::span<const ObservedRound> runs);
  /// False if runs contradict it, so that prices follow what they say.
  bool rounds_hold_plain_steps() const { return impossible_.empty(); }
  /// Totals of replicates from `first` on, no less than those of their plain steps.
  void bounded_totals(const Place& at, const Place& plain, std::size_t first, std::span<double> totals) const;

  FitOptions options_;
  std::shared_ptr<const RoundPosterior> posterior_;
  bool knows_contexts_ = false;
  std::vector<double> usual_factors_;
  std::vector<double> fitted_;
  FittedRanges all_;
  /// Ranges of the plain runs, and of those that drafted chains, or this tree; empty if there is none.
  std::array<std::optional<FittedRanges>, 2> ranges_;
  /// Ranges of the runs of each tree.
  std::map<DraftTree, FittedRanges> tree_ranges_;
  /// The tree that drafts are; a chain if it is empty.
  std::optional<DraftTree> tree_;
  double usual_context_ = 0;
  std::vector<Note> findings_;
  std::string impossible_;
};

/// Predicts the seconds of each of the first `predicted` runs, or of all, by a fit without it. Of more than 24 runs,
/// every nth is left out at once, n >= 3.
/// @return empty for a plain run where all others drafted, the other way round, and for a run alone
/// @throws as FittedCost
std::vector<std::optional<double>> leave_one_out(std::span<const ObservedRound> runs, const FitOptions& options,
                                                 std::optional<std::size_t> predicted = std::nullopt);

}  // namespace specdec::cost
