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
#include "analysis/planning/measured_preference.hpp"
#include "traces/note.hpp"

/// What to deploy: gamma, draft and a decision for every batch and context, from measured acceptance and measured cost.
namespace specdec::planning {

/// A speedup that was measured, against plain decoding at the same batch and context.
struct MeasuredSpeedup {
  std::int64_t gamma = 1;
  double batch = 1;
  double context = 0;
  double speedup = 1;
};

/// One draft that could be deployed.
struct DeploymentDraft {
  std::string name;
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  std::shared_ptr<const cost::RoundCost> cost;
  /// Clusters (requests, windows, runs) behind the interval of the acceptance, where there are any.
  std::optional<std::int64_t> clusters = {};
  /// What the intervals must not contradict.
  std::vector<MeasuredSpeedup> measured = {};
};

/// Where a plan is asked for.
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
  /// Nobody planned it: what drafts goes on there as at a batch beside it, or has a rule of its own.
  bool held = false;
};

/// What the prices at a batch and context rest on.
enum class PriceBasis {
  measured,      ///< on times that were measured there or between
  stated,        ///< on ratios that somebody states
  modelled,      ///< on bytes, operations and peaks
  extrapolated,  ///< plain decoding lies beyond the batches or contexts that were measured
  not_priced,    ///< no price tells whether drafts pay
};

/// Whether a gamma is chosen on this basis.
/// @param extrapolate  DeploymentQuestion::extrapolate
constexpr bool decides(PriceBasis basis, bool extrapolate) {
  return basis != PriceBasis::not_priced && (basis != PriceBasis::extrapolated || extrapolate);
}

enum class Verdict { speculate, do_not_speculate, cannot_tell };

/// What a plan says of all batches from batch_low to batch_high, both included.
struct PlannedStretch {
  std::int64_t batch_low = 1;
  std::int64_t batch_high = 1;
  /// Nothing where it is not priced.
  std::optional<std::int64_t> gamma = 0;
  PriceBasis basis = PriceBasis::measured;
  /// Whether the intervals bear out the estimates that `gamma` follows: the verdict of the first and of the last batch
  /// where both have the same one, else cannot_tell. A batch speculates where it does so at some context, and does not
  /// where it does so at none.
  Verdict verdict = Verdict::cannot_tell;
};

/// Where by the intervals a crossover batch lies.
struct CrossoverBounds {
  /// The batch after the last one below the crossover that surely gains.
  std::int64_t low = 1;
  /// The first batch from which on surely none gains; nothing where that is told of no batch of the schedule.
  std::optional<std::int64_t> high;
};

/// "measured", "stated", "modelled", "extrapolated", "not_priced"; "speculate", "do not speculate", "cannot tell".
std::string_view name_of(PriceBasis basis);
std::string_view name_of(Verdict verdict);

struct DeploymentQuestion {
  /// At least one, names all different.
  std::vector<DeploymentDraft> drafts;
  /// Sequences decoded together, each > 0; at least one.
  std::vector<double> batches = {1};
  /// Tokens in the cache per sequence, each >= 0; at least one.
  std::vector<double> contexts = {0};
  /// Where not empty, the points of the plan, instead of every batch at every context.
  std::vector<PlanPoint> points = {};
  /// All gammas from 0 to this one are compared, [1, largest_scanned_gamma].
  std::int64_t max_gamma = 32;
  /// Relative loss of speedup up to which a gamma counts as near-optimal, [0, 1).
  double tolerance = 0.01;
  /// g: speculation is worth its trouble where it is at least 1 + g times as fast, [0, inf).
  double min_gain = 0.05;
  /// Largest relative loss of speedup, by the reading that has it smallest, at which the best gamma that was measured,
  /// or plain decoding, is preferred to one beyond, [0, 1).
  double prefer_measured = measured_preference;
  /// What is deployed: rising stretches that cover every batch asked for. Empty where that is not known.
  std::vector<ScheduleStretch> deployed = {};
  /// Largest acceptable loss of what is deployed to what is recommended, [0, 1].
  std::optional<double> max_regret = {};
  /// Decide by what is extrapolated, too; else such batches and contexts are cannot_tell.
  bool extrapolate = false;
  /// The schedule covers the batches 1 to this one, [1, largest_scheduled_batch]; without it there is none.
  std::optional<std::int64_t> schedule_up_to = {};
};

inline constexpr std::int64_t largest_scanned_gamma = 1024;
inline constexpr std::int64_t largest_scheduled_batch = 65536;

/// One gamma at one batch and context. Times are seconds where the cost knows seconds, else multiples of a plain target
/// step at the same batch and context.
struct DeploymentRow {
  std::int64_t gamma = 0;
  double tokens_per_step = 1;
  /// 95% interval of the acceptance together with the range of its readings.
  estimate::Interval tokens_interval = {1, 1};
  cost::RoundTime time;
  /// Of plain decoding at the same batch and context.
  double speedup = 1;
  estimate::Interval speedup_ci95 = {1, 1};
  /// 1 - speedup / the largest speedup of the rows, [0, 1].
  double regret = 0;
  /// The acceptance or the cost lies beyond what was measured.
  bool extrapolated = false;
};

/// What keeps a verdict from being sure.
enum class UncertaintySource {
  acceptance,     ///< too few rounds or requests were counted
  cost,           ///< the cost of a round is not known well enough
  extrapolation,  ///< acceptance is carried to a gamma, or the cost to a point, that was not measured
};

/// "acceptance", "cost", "extrapolation".
std::string_view name_of(UncertaintySource source);

/// A run that would tell.
struct NextMeasurement {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Requests to count at least; nothing where the number is not known, as for a measurement of the cost.
  std::optional<std::int64_t> requests;
  /// The same as a plain run too, since the cost is asked for.
  bool with_baseline = false;
};

/// How the width of a speedup's interval comes about; the two sum to 1.
struct IntervalShare {
  double acceptance = 0;
  double cost = 0;
};

/// The same quantity without speculation and with the best gamma.
struct BaselineAndSpeculative {
  double baseline = 0;
  double speculative = 0;
};

/// The largest draft time that some gamma would still gain with, the other costs as they are.
struct BreakEvenCost {
  /// Time of one draft pass / time of a plain step, dimensionless, > 0; of passes there are cost::draft_passes().
  double c = 0;
  std::int64_t gamma = 0;
};

/// What is deployed, against the best gamma of the point.
struct DeployedAtPoint {
  std::int64_t gamma = 0;
  double speedup = 1;
  double regret = 0;
  /// The largest regret at the ends of the acceptance's interval; the regret where acceptance is taken as exact.
  double worst_regret = 0;
  /// The largest loss to the recommended gamma by the estimate or at one end of the acceptance's interval, which is 0
  /// where none is larger: to the best gamma, or to plain decoding where the verdict is not to speculate.
  double behind_recommended = 0;
  bool exceeds_max_regret = false;  ///< behind_recommended does
};

struct PointPlan {
  double batch = 1;
  double context = 0;
  Verdict verdict = Verdict::cannot_tell;
  /// Both where the verdict is cannot_tell.
  std::optional<UncertaintySource> dominant_source;
  std::optional<NextMeasurement> next;

  PriceBasis basis = PriceBasis::measured;
  /// Gammas 0, 1, 2, ... as far as acceptance and cost are known; that of what is deployed too. Empty where plain
  /// decoding has no price.
  std::vector<DeploymentRow> rows;
  /// Why the gammas behind `rows` have no price; empty where all that are compared have one.
  std::string price_limit;
  /// Of the best gamma, the smallest one of ties: the fastest; where that one is extrapolated, the fastest of those
  /// that are not, plain decoding among them, unless it surely loses more than prefer_measured. Nothing where the basis
  /// is not_priced; then what follows is empty, too, but for the break-evens.
  std::optional<std::size_t> optimal_row = {};
  /// Of the fastest gamma, where it is not the best.
  std::optional<std::size_t> passed_over_row = {};
  std::optional<estimate::Estimate> speedup_estimate;
  /// Nothing where the interval has no width.
  std::optional<IntervalShare> interval_share;
  /// Regret of the best gamma at the ends of the acceptance's interval, the larger one.
  double worst_regret = 0;
  std::vector<std::int64_t> near_optimal_gammas;
  /// The best gamma is the largest one that was compared.
  bool at_limit = false;

  /// Nothing where the cost knows no seconds.
  std::optional<BaselineAndSpeculative> seconds_per_output_token;
  std::optional<BaselineAndSpeculative> output_tokens_per_second;  ///< of all sequences of the batch

  /// Of the best gamma, or of gamma = 1 where plain decoding is best: time per draft pass / plain target time (0 where
  /// none is made), and target time / plain target time. Nothing where the cost cannot tell its parts apart or a plain
  /// step's target time is 0.
  std::optional<double> c;
  std::optional<double> verify_factor;
  /// The constant acceptance rate at which the best gamma is as fast as plain decoding; nothing where no rate pays.
  std::optional<double> break_even_alpha;
  /// Nothing where no draft time above 0 would pay, or where no draft pass is made.
  std::optional<BreakEvenCost> break_even_cost;

  std::optional<DeployedAtPoint> deployed;

  /// Null without an optimum.
  const DeploymentRow* optimal() const { return optimal_row ? &rows[*optimal_row] : nullptr; }
  /// Plain decoding is the best, since no gamma that was measured is faster and no other one surely gains enough.
  bool prefers_plain() const { return passed_over_row && optimal_row == 0; }
};

struct DraftPlan {
  std::string name;
  /// In order of context, then batch, as asked for; or as `points` are.
  std::vector<PointPlan> points;
  /// Covers 1 to schedule_up_to without gaps; empty where that was not asked for. With several contexts each batch has
  /// the gamma whose worst regret over them is least.
  std::vector<PlannedStretch> schedule;
  /// The smallest batch from which on, up to schedule_up_to, plain decoding is the schedule's answer, since no draft
  /// gains min_gain; nothing where it still speculates or decides nothing at the end, or without a schedule.
  std::optional<std::int64_t> crossover_batch;
  /// Where there is a crossover batch.
  std::optional<CrossoverBounds> crossover_bounds;
  /// "point_not_priced", "gamma_not_priced", "batch_not_timed", "optimum_at_limit", "optimum_extrapolated",
  /// "measured_preferred", "batch_not_priced", "schedule_extrapolated".
  std::vector<Note> notes;
};

struct DeploymentPlan {
  std::vector<DraftPlan> drafts;
  /// Place in `drafts` of the one to take; nothing where none is known to be faster than plain decoding at any point.
  std::optional<std::size_t> recommended_draft;
  /// At each point the place of the fastest draft of those with an optimum; nothing where plain decoding is faster, or
  /// none has one.
  std::vector<std::optional<std::size_t>> best_draft;
  /// What is deployed is behind what is recommended by more than max_regret at some point.
  bool exceeds_max_regret = false;
};

/// Answers the question. Baseline and speculative are compared at equal batch and context; the best gamma is found by
/// scanning all of them, since costs with steps make the speedup rise and fall more than once. A gamma beyond what was
/// measured is the best one only where it gains more than prefer_measured by every reading of the acceptance.
///
///   speedup(gamma) = tokens per step(gamma) round(0) / round(gamma)
///
/// The interval of a speedup: below and above the value, the squares of the half-widths of ln(tokens per step) and of
/// ln(round(0) / round(gamma)) add up. The half-width of the tokens is that of their confidence interval plus that of
/// their readings; the cost's is the central 95% of its replicates, and reaches at least as far as speedups that were
/// measured lie from those planned there, ln(measured / planned), by the share
///
///   min(gamma + 1, gamma' + 1) / max(...)  min(B, B') / max(...)  min(x + 1, x' + 1) / max(...)
///
/// at another gamma', batch B' and context x', so that no interval leaves out what was measured at its own.
///
/// The verdict: speculate where the lower end of the best gamma's interval is at least 1 + g, do not speculate where
/// the upper end of every gamma's interval is below 1 + g, else cannot tell. A gamma without a price is taken to cost
/// what the largest one with a price does, and no less: where it may then gain g and plain decoding is the best of
/// those with a price, there is no optimum and the point is not priced. Beyond what was measured nothing is told unless
/// the question asks to extrapolate, and nothing by a cost that is impossible. The schedule follows the same rules.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @throws std::domain_error if a value is outside the range stated beside it, the cost refuses plain decoding at all
///   points, or max_regret cannot be checked
/// @throws std::invalid_argument if a list that must hold something is empty, a name occurs twice, or what is deployed
///   leaves out a batch
DeploymentPlan plan_deployment(const DeploymentQuestion& question);

}  // namespace specdec::planning
