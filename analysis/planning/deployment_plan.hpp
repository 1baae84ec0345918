#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/worlds/choice.hpp"
#include "analysis/worlds/schedule.hpp"
#include "traces/note.hpp"

/// Deployment plans: gamma, draft and how sure it is for every batch and context, from worlds of acceptance and cost.
namespace specdec::planning {

/// Acceptance from a context on, up to where another one begins.
struct ContextAcceptance {
  /// Tokens in the cache per sequence, >= 0.
  double from = 0;
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
};

/// One draft that could be deployed.
struct DeploymentDraft {
  std::string name;
  /// At all contexts, unless `by_context` says it.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  std::shared_ptr<const cost::RoundCost> cost;
  /// From rising contexts, the first of them 0; empty if acceptance is the same at all.
  std::vector<ContextAcceptance> by_context = {};
  /// Drafts branch: plain decoding is compared with this tree alone, whose gamma is its depth.
  std::optional<cost::DraftTree> tree = {};
  /// False if no server would start with it: it is taken only if that is so of all.
  bool can_be_served = true;
};

/// A point for which a plan is requested.
struct PlanPoint {
  /// Sequences decoded together, > 0.
  double batch = 1;
  /// Tokens in the cache per sequence, >= 0.
  double context = 0;
};

/// A gamma that is drafted at all batches from batch_low to batch_high, both included.
struct ScheduleStretch {
  std::int64_t batch_low = 1;
  std::int64_t batch_high = 1;
  std::int64_t gamma = 0;
};

/// The basis of the prices at a batch and context.
enum class PriceBasis {
  measured,      ///< from times that were measured there or on both sides
  stated,        ///< from ratios that a user states
  modelled,      ///< from bytes, operations and peaks
  extrapolated,  ///< plain decoding lies beyond the measured batches or contexts
};

/// The plan for all batches from batch_low to batch_high, both included.
struct PlannedStretch : ScheduleStretch {
  PriceBasis basis = PriceBasis::measured;
  /// The smallest speedup of `gamma` over the stretch's batches, and the least share of worlds in which it gains what is
  /// asked for; where gamma is 0 the largest share of a batch's best draft.
  double speedup = 1;
  double share = 0;
};

/// "measured", "stated", "modelled", "extrapolated".
std::string_view name_of(PriceBasis basis);
/// "tree 5-4-16": depth (steps), top_k and verified positions (draft tokens).
std::string name_of(const cost::DraftTree& tree);

struct DeploymentQuestion {
  /// At least one draft; all names differ.
  std::vector<DeploymentDraft> drafts;
  /// Sequences decoded together, each > 0; at least one.
  std::vector<double> batches = {1};
  /// Tokens in the cache per sequence, each >= 0; at least one.
  std::vector<double> contexts = {0};
  /// If not empty, the points of the plan, instead of every batch at every context.
  std::vector<PlanPoint> points = {};
  /// All gammas from 0 to this one are compared, [1, largest_scanned_gamma].
  std::int64_t max_gamma = 32;
  /// g: speculation is worthwhile if it is at least 1 + g times as fast, [0, inf).
  double min_gain = 0.05;
  /// The deployed schedule: stretches in increasing order that cover every requested batch. Empty if unknown.
  std::vector<ScheduleStretch> deployed = {};
  /// Largest acceptable loss of the deployed gamma relative to the recommended one, [0, 1].
  std::optional<double> max_regret = {};
  /// The schedule covers the batches 1 to this one, [1, largest_scheduled_batch]; if empty, there is no schedule.
  std::optional<std::int64_t> schedule_up_to = {};
  /// What the engine's schedules cost; of trees there are none.
  worlds::SchedulePrices schedule_prices = {};
  estimate::DrawOptions draws = {};
};

inline constexpr std::int64_t largest_scanned_gamma = 1024;
inline constexpr std::int64_t largest_scheduled_batch = 65536;

/// One gamma at one batch and context. Times are seconds if the cost knows seconds, else multiples of a plain target
/// step at the same batch and context. Figures with an interval are those of worlds::Spread.
struct DeploymentRow {
  std::int64_t gamma = 0;
  double tokens_per_step = 1;
  estimate::Interval tokens_interval = {1, 1};
  cost::RoundTime time;
  /// Speedup over plain decoding at the same batch and context.
  double speedup = 1;
  estimate::Interval speedup_ci95 = {1, 1};
  /// Of several alternatives their least and largest medians; empty of one.
  std::optional<estimate::Interval> tokens_bounds, speedup_bounds;
  /// Expected regret, [0, 1].
  double regret = 0;
  /// The share of worlds in which it is at least 1 + min_gain times as fast as plain decoding.
  double share = 0;
  /// True if the acceptance or the cost lies beyond what was measured.
  bool extrapolated = false;
};

/// What is not known of a point: the expected regret of the recommended gamma, and what of it would be left if the
/// acceptance or the cost were known to be its middle.
struct Uncertainty {
  double regret = 0;
  double with_acceptance_known = 0;
  double with_cost_known = 0;
};

/// A run that would tell most of what is uncertain at a point.
struct NextMeasurement {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Also run without speculation, since the cost is in question.
  bool with_baseline = false;
  /// The tree to draft, of which gamma is the depth; a chain if it is empty.
  std::optional<cost::DraftTree> tree = {};
};

/// No run is worth making where the expected regret is below this.
inline constexpr double regret_that_matters = 0.005;

/// One quantity without speculation and with the recommended gamma.
struct BaselineAndSpeculative {
  double baseline = 0;
  double speculative = 0;
};

/// The deployed gamma, compared with the recommended gamma of the point.
struct DeployedAtPoint {
  std::int64_t gamma = 0;
  double speedup = 1;
  /// Expected regret, as that of the rows.
  double regret = 0;
  /// The loss relative to the recommended gamma in the middle of the worlds, [0, 1]; 0 if there is none.
  double behind_recommended = 0;
  /// The share of worlds in which the recommended gamma is at least 1 + min_gain times as fast as the deployed one.
  double share_over = 0;
  bool exceeds_max_regret = false;  ///< true if behind_recommended does
};

struct PointPlan {
  double batch = 1;
  double context = 0;
  PriceBasis basis = PriceBasis::measured;
  /// Gammas 0, 1, 2, ... as far as the acceptance is known; of a tree plain decoding and its depth.
  std::vector<DeploymentRow> rows;
  /// The row of the recommended gamma, that of least expected regret (worlds::choose).
  std::size_t optimal_row = 0;
  /// The row of the best gamma that drafts; the recommended one unless that is plain decoding.
  std::size_t drafting_row = 0;
  /// That drafts gain min_gain; open with share 0.5 where `doubt` says why nothing is decided.
  worlds::Certainty certainty = worlds::Certainty::open;
  double share = 0;
  /// The reason why what was measured decides nothing; empty if there is none.
  std::string doubt;
  estimate::Estimate speedup_estimate;
  Uncertainty uncertainty;
  /// The gammas whose expected regret exceeds the least by no more than worlds::alike_regrets.
  std::vector<std::int64_t> near_optimal_gammas;
  std::optional<NextMeasurement> next;

  /// Empty if the cost does not know seconds.
  std::optional<BaselineAndSpeculative> seconds_per_output_token;
  std::optional<BaselineAndSpeculative> output_tokens_per_second;  ///< total of all sequences of the batch

  /// For the recommended gamma, or gamma = 1 if that is plain decoding: all that a draft pass takes / time of a plain
  /// step (0 if there is no pass), and target time / plain target time. Empty if the cost cannot separate its parts or
  /// a plain step's target time is 0.
  std::optional<double> c;
  std::optional<double> verify_factor;
  /// The constant acceptance rate at which the best gamma is as fast as plain decoding; empty if no rate pays.
  std::optional<double> break_even_alpha;

  std::optional<DeployedAtPoint> deployed;

  const DeploymentRow& optimal() const { return rows[optimal_row]; }
};

struct DraftPlan {
  std::string name;
  /// Set if the draft is a tree: its gamma is then the tree's depth, or 0.
  std::optional<cost::DraftTree> tree = {};
  /// In order of context, then batch, as requested; or in the order of `points`.
  std::vector<PointPlan> points;
  /// Covers 1 to schedule_up_to without gaps; empty if not requested. With several contexts each batch has
  /// the gammas' largest regrets over them.
  std::vector<PlannedStretch> schedule;
  /// The prices that alone keep it from being another one; empty if they do not.
  std::optional<worlds::SchedulePrices> held_by = {};
  /// The first batch of the last stretch if that is plain decoding; empty if it drafts, or without a schedule.
  std::optional<std::int64_t> crossover_batch;
  /// "gamma_not_known", "not_timed", "optimum_at_limit".
  std::vector<Note> notes;
};

struct DeploymentPlan {
  std::vector<DraftPlan> drafts;
  /// Index into `drafts` of the one to take; empty if none is known to be faster than plain decoding at any point.
  std::optional<std::size_t> recommended_draft;
  /// At each point the index of the fastest draft; empty if plain decoding is faster.
  std::vector<std::optional<std::size_t>> best_draft;
  /// [draft]: the least share of worlds, over the points, in which the recommended draft is faster than this one; 0.5 of
  /// itself. Empty without a recommended draft.
  std::vector<double> share_better;
  /// True if the deployed gamma is behind the recommended one by more than max_regret at some point.
  bool exceeds_max_regret = false;
};

/// Answers the question. Baseline and speculative are compared at equal batch and context, in every world:
///
///   speedup(gamma) = tokens per step(gamma) round(0) / round(gamma)
///
/// The recommended gamma is that of least expected regret (worlds::choose), at points and over the schedule
/// (worlds::schedule); how sure it is, is the share of worlds in which it gains what is asked for.
///
/// Source:   docs/theory.md#choices
/// @throws std::domain_error if a value is outside the range stated beside it, or a round has no positive finite time
/// @throws std::invalid_argument if a required list is empty, a name occurs twice, or the deployed stretches
///   leave out a batch
DeploymentPlan plan_deployment(const DeploymentQuestion& question);

/// The integer batch of a schedule that stands for a mean batch > 0: rounded, and at least 1.
double whole_batch(double batch);

}  // namespace specdec::planning
