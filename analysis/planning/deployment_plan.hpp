#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/measured_preference.hpp"
#include "traces/note.hpp"

/// Deployment plans: gamma, draft and a decision for every batch and context, from measured acceptance and cost.
namespace specdec::planning {

/// A measured speedup over plain decoding at the same batch and context.
struct MeasuredSpeedup {
  std::int64_t gamma = 1;
  double batch = 1;
  double context = 0;
  double speedup = 1;
};

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
  /// Clusters (requests, windows, runs) behind the interval of the acceptance, if any.
  std::optional<std::int64_t> clusters = {};
  /// Measured speedups that the intervals must not contradict.
  std::vector<MeasuredSpeedup> measured = {};
  /// The acceptance's interval is a range that somebody states, no error of an estimate: the best gamma is the one
  /// whose largest regret at its two ends is least.
  bool states_range = false;
  /// From rising contexts, the first of them 0; empty if acceptance is the same at all.
  std::vector<ContextAcceptance> by_context = {};
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
  /// Not planned: the engine drafts there as at a neighbouring batch, or by a rule of its own.
  bool held = false;
};

/// The basis of the prices at a batch and context.
enum class PriceBasis {
  measured,      ///< from times that were measured there or on both sides
  stated,        ///< from ratios that a user states
  modelled,      ///< from bytes, operations and peaks
  extrapolated,  ///< plain decoding lies beyond the measured batches or contexts
  not_priced,    ///< no price determines whether drafts pay
};

/// True if a gamma is chosen on this basis.
/// @param extrapolate  DeploymentQuestion::extrapolate
constexpr bool decides(PriceBasis basis, bool extrapolate) {
  return basis != PriceBasis::not_priced && (basis != PriceBasis::extrapolated || extrapolate);
}

enum class Verdict { speculate, do_not_speculate, cannot_tell };

/// One gamma for every batch, for engines without schedules.
struct FixedGamma {
  std::int64_t gamma = 0;
  /// The largest share of a decided batch's best speedup that it loses, as DraftPlan::fixed counts, [0, 1], and the
  /// batch at which it does.
  double worst_regret = 0;
  double worst_batch = 1;
  /// The smallest of its speedups over plain decoding, and the batch at which it occurs.
  double least_speedup = 1;
  double slowest_batch = 1;
  /// The first batch at which it is slower than plain decoding; 0 if there is none.
  double slow_from = 0;
};

/// The plan for all batches from batch_low to batch_high, both included.
struct PlannedStretch {
  std::int64_t batch_low = 1;
  std::int64_t batch_high = 1;
  /// Empty if not priced.
  std::optional<std::int64_t> gamma = 0;
  PriceBasis basis = PriceBasis::measured;
  /// What the intervals say of `gamma` at all batches of the stretch (verdict_of).
  Verdict verdict = Verdict::cannot_tell;
};

/// The range of crossover batches that the intervals allow.
struct CrossoverBounds {
  /// The batch after the last one below the crossover that certainly gains.
  std::int64_t low = 1;
  /// The first batch from which on certainly none gains; empty if there is no such batch in the schedule.
  std::optional<std::int64_t> high;
};

/// "measured", "stated", "modelled", "extrapolated", "not_priced"; "speculate", "do not speculate", "cannot tell".
std::string_view name_of(PriceBasis basis);
std::string_view name_of(Verdict verdict);

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
  /// Nobody asks for max_gamma: where the fastest gamma is the largest one that is compared, the smallest one within
  /// the tolerance of it is the best.
  bool max_gamma_is_default = false;
  /// Relative loss of speedup up to which a gamma counts as near-optimal, [0, 1).
  double tolerance = 0.01;
  /// g: speculation is worthwhile if it is at least 1 + g times as fast, [0, inf).
  double min_gain = 0.05;
  /// Largest relative loss of speedup, by the reading for which it is smallest, at which the best gamma up to the
  /// longest measured one, or plain decoding, is preferred to one beyond it, [0, 1).
  double prefer_measured = measured_preference;
  /// The deployed schedule: stretches in increasing order that cover every requested batch. Empty if unknown.
  std::vector<ScheduleStretch> deployed = {};
  /// Largest acceptable loss of the deployed gamma relative to the recommended one, [0, 1].
  std::optional<double> max_regret = {};
  /// Also decide by extrapolated prices; otherwise such batches and contexts are cannot_tell.
  bool extrapolate = false;
  /// The schedule covers the batches 1 to this one, [1, largest_scheduled_batch]; if empty, there is no schedule.
  std::optional<std::int64_t> schedule_up_to = {};
};

inline constexpr std::int64_t largest_scanned_gamma = 1024;
/// Regrets that differ by no more than this are equal.
inline constexpr double equal_regrets = 1e-12;
inline constexpr std::int64_t largest_scheduled_batch = 65536;

/// One gamma at one batch and context. Times are seconds if the cost knows seconds, else multiples of a plain target
/// step at the same batch and context.
struct DeploymentRow {
  std::int64_t gamma = 0;
  double tokens_per_step = 1;
  /// 95% interval of the acceptance combined with the range of its readings.
  estimate::Interval tokens_interval = {1, 1};
  /// The ends of what a recording leaves open of the tokens per step, without sampling, and the speedups there; empty
  /// if it determines them. `tokens_per_step` and `speedup` are then those at the middle.
  std::optional<estimate::Interval> tokens_bracket;
  std::optional<estimate::Interval> speedup_bracket;
  cost::RoundTime time;
  /// Speedup over plain decoding at the same batch and context.
  double speedup = 1;
  estimate::Interval speedup_ci95 = {1, 1};
  /// 1 - speedup / the largest speedup of the rows, [0, 1].
  double regret = 0;
  /// True if the acceptance or the cost lies beyond what was measured.
  bool extrapolated = false;
  /// True if the cost's range is cut where drafts take no time.
  bool cost_reaches_plain = false;
  /// True if the point's verdict is to speculate, this gamma's own interval says so, and its speedup is at most 5%
  /// below the best one's.
  bool sure = false;
};

/// The reason why a verdict is uncertain.
enum class UncertaintySource {
  acceptance,     ///< too few rounds or requests were counted
  cost,           ///< the cost of a round is not known precisely enough
  extrapolation,  ///< acceptance or cost was carried to a gamma or a point that was not measured
};

/// "acceptance", "cost", "extrapolation".
std::string_view name_of(UncertaintySource source);

/// A run that would settle the verdict.
struct NextMeasurement {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Fewest requests to count; empty if the number is unknown, as for a measurement of the cost.
  std::optional<std::int64_t> requests;
  /// Also run without speculation, since the cost is in question.
  bool with_baseline = false;
  /// The tree to draft, of which gamma is the depth; a chain if it is empty.
  std::optional<cost::DraftTree> tree = {};
};

/// The contributions to the width of a speedup's interval; the two sum to 1.
struct IntervalShare {
  double acceptance = 0;
  double cost = 0;
};

/// One quantity without speculation and with the best gamma.
struct BaselineAndSpeculative {
  double baseline = 0;
  double speculative = 0;
};

/// The largest draft time at which some gamma would still gain, with the other costs unchanged.
struct BreakEvenCost {
  /// Time of one draft pass / time of a plain step, dimensionless, > 0; cost::draft_passes() is the number of them.
  double c = 0;
  std::int64_t gamma = 0;
};

/// The deployed gamma, compared with the best and with the recommended gamma of the point.
struct DeployedAtPoint {
  std::int64_t gamma = 0;
  double speedup = 1;
  double regret = 0;
  /// The largest regret at the ends of the acceptance's interval; the regret itself if acceptance is taken as exact.
  double worst_regret = 0;
  /// The largest loss relative to the recommended gamma, by the estimate or at one end of the acceptance's interval; 0
  /// if there is none. Relative to plain decoding if the verdict is not to speculate.
  double behind_recommended = 0;
  bool exceeds_max_regret = false;  ///< true if behind_recommended does
};

struct PointPlan {
  double batch = 1;
  double context = 0;
  Verdict verdict = Verdict::cannot_tell;
  /// Both are set if the verdict is cannot_tell; `next` is empty where the acceptance is refused, which another
  /// recording and no run of an engine would mend.
  std::optional<UncertaintySource> dominant_source;
  std::optional<NextMeasurement> next;

  PriceBasis basis = PriceBasis::measured;
  /// Gammas 0, 1, 2, ... as far as acceptance and cost are known; also the deployed gamma. Empty if plain
  /// decoding has no price.
  std::vector<DeploymentRow> rows;
  /// The reason why the gammas beyond `rows` have no price; empty if all that are compared have one.
  std::string price_limit;
  /// The row of the recommended gamma, in a tie the smallest. It is the best one: the fastest, or the one of least
  /// worst_regret if the draft states a range or is known in a bracket; if that one lies beyond the longest
  /// gamma that is not extrapolated and does not surely gain on the fastest up to there (surely_gains), the fastest of
  /// those up to there, plain decoding included, and of those beyond that do. If the interval of that one does not
  /// surely gain min_gain, and some are sure, it is the best of these. Empty if the basis is not_priced; what follows
  /// is then empty too, except the break-evens.
  std::optional<std::size_t> optimal_row = {};
  /// The row of the fastest gamma, if it lies beyond the longest measured one and a surer one is preferred to it.
  std::optional<std::size_t> passed_over_row = {};
  /// The row of the best gamma, if its own interval reaches below 1 + min_gain and a sure one is recommended.
  std::optional<std::size_t> unsure_row = {};
  std::optional<estimate::Estimate> speedup_estimate;
  /// Empty if the interval has no width.
  std::optional<IntervalShare> interval_share;
  /// Regret of the recommended gamma at the ends of the acceptance's interval, the larger one.
  double worst_regret = 0;
  /// The gammas whose regret is at most the tolerance, whatever else is said of them. For a bracket all from the
  /// smallest to the largest gamma of which that holds at its middle or at one of its ends.
  std::vector<std::int64_t> near_optimal_gammas;
  /// True if the fastest gamma, or the best one of a stated range, is the largest one that was compared.
  bool at_limit = false;

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
  /// Empty if no draft time above 0 would pay, if there is no draft pass, or if acceptance is known in a bracket.
  std::optional<BreakEvenCost> break_even_cost;

  std::optional<DeployedAtPoint> deployed;

  /// Null without an optimum.
  const DeploymentRow* optimal() const { return optimal_row ? &rows[*optimal_row] : nullptr; }
  /// True if the recommended gamma lies beyond the longest measured one.
  bool lies_beyond_measured() const {
    const auto is_measured = [](const DeploymentRow& row) { return !row.extrapolated; };
    return optimal_row &&
           std::none_of(rows.begin() + static_cast<std::ptrdiff_t>(*optimal_row), rows.end(), is_measured);
  }
  /// True if plain decoding is best because no measured gamma is faster and no other one certainly gains enough.
  bool prefers_plain() const { return passed_over_row && optimal_row == 0; }
};

struct DraftPlan {
  std::string name;
  /// Set if the draft is a tree: its gamma is then the tree's depth, or 0.
  std::optional<cost::DraftTree> tree = {};
  /// In order of context, then batch, as requested; or in the order of `points`.
  std::vector<PointPlan> points;
  /// Covers 1 to schedule_up_to without gaps; empty if not requested. With several contexts each batch has
  /// the gamma whose worst regret over them is smallest.
  std::vector<PlannedStretch> schedule;
  /// The gamma whose largest regret over the decided batches of the schedule is smallest, among the gammas known at all
  /// of these, in a tie the smallest; empty if no batch is decided. If no gamma beyond what was measured
  /// surely gains at any batch, it is one up to there; else unmeasured acceptance counts by the reading that says
  /// least; where a default max_gamma limits the fastest, it is the smallest gamma within the tolerance.
  std::optional<FixedGamma> fixed;
  /// The smallest batch from which on, up to schedule_up_to, the schedule's answer is plain decoding because no draft
  /// gains min_gain; empty if it still speculates or decides nothing at the end, or without a schedule.
  std::optional<std::int64_t> crossover_batch;
  /// Empty without a crossover batch.
  std::optional<CrossoverBounds> crossover_bounds;
  /// "point_not_priced", "gamma_not_priced", "batch_not_timed", "optimum_at_limit", "optimum_extrapolated",
  /// "plain_extrapolated",
  /// "measured_preferred", "batch_not_priced", "schedule_extrapolated".
  std::vector<Note> notes;
};

struct DeploymentPlan {
  std::vector<DraftPlan> drafts;
  /// Index into `drafts` of the one to take; empty if none is known to be faster than plain decoding at any point.
  std::optional<std::size_t> recommended_draft;
  /// At each point the index of the fastest draft among those with an optimum; empty if plain decoding is faster, or
  /// none has one.
  std::vector<std::optional<std::size_t>> best_draft;
  /// True if the deployed gamma is behind the recommended one by more than max_regret at some point.
  bool exceeds_max_regret = false;
};

/// Answers the question. Baseline and speculative are compared at equal batch and context; the best gamma is found by
/// scanning all of them, since for costs with steps the speedup rises and falls more than once. A gamma beyond what was
/// measured is best only if it gains more than prefer_measured by every reading of the acceptance, or min_gain where
/// what was measured does not, and of several such it is the fastest; never, without `extrapolate`, if its cost lies
/// beyond what was measured and nothing says how far off that may be. For a stated range, or a bracket that a recording
/// leaves, the best gamma is that of minimax regret over its two ends, as for the closed forms.
///
///   speedup(gamma) = tokens per step(gamma) round(0) / round(gamma)
///
/// The interval of a speedup: below and above the value, the squares of the half-widths of ln(tokens per step)
/// and ln(round(0) / round(gamma)) add up. The half-width of the tokens is that of their confidence interval plus that
/// of their readings; that of the cost is the central 95% of its replicates, and reaches at least as far as measured
/// speedups differ from those planned at their points, ln(measured / planned), by the share
///
///   min(gamma + 1, gamma' + 1) / max(...)  min(B, B') / max(...)  min(x + 1, x' + 1) / max(...)
///
/// at another gamma', batch B' and context x', so that every interval includes the speedup measured at its own point.
///
/// The verdict: speculate if the lower end of some gamma's interval is at least 1 + g, unless plain decoding is the
/// best; the recommended gamma is the best one if it is among these, else the best of these. Do not speculate if the
/// upper end of every gamma's interval is below 1 + g, else cannot tell. A gamma without a price is assumed to cost as
/// much as the largest one with a price, and no less: if it may then gain g and plain decoding is the best of those
/// with a price, there is no optimum and the point is not priced. Beyond what was measured nothing is decided unless
/// the question asks to extrapolate, and nothing by an impossible cost or a refused acceptance. The schedule follows
/// the same rules.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @throws std::domain_error if a value is outside the range stated beside it, the cost rejects plain decoding at all
///   points, or max_regret cannot be checked
/// @throws std::invalid_argument if a required list is empty, a name occurs twice, or the deployed stretches
///   leave out a batch
DeploymentPlan plan_deployment(const DeploymentQuestion& question);

/// Gives a point the verdict and the recommended gamma of the same point under wider intervals of the same estimates;
/// its own intervals stay.
void take_verdict(const PointPlan& wider, PointPlan& point);

/// Sets which draft is the fastest at each point, and which one to take: the one whose largest loss relative to the
/// best of each point is smallest; the mean loss breaks ties. A draft that has no optimum loses everything.
/// @param slowness  of a draft at a point, the smaller the better, infinite without an optimum
void choose_draft(const std::function<double(std::size_t draft, std::size_t point)>& slowness, DeploymentPlan& plan);

}  // namespace specdec::planning
