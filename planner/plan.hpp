#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planning/bench_plan.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "analysis/planning/next_run.hpp"
#include "analysis/planning/plan.hpp"
#include "planner/acceptance.hpp"
#include "planner/assumption.hpp"
#include "planner/cost.hpp"

/// What people ask of speculative decoding, and what they are answered: an Acceptance and a Cost give a Plan.
namespace specdec::planner {

inline constexpr std::int64_t largest_max_gamma = 100'000;
/// Where a question names none: of plans over points, and of benchmark runs.
inline constexpr std::int64_t usual_max_gamma = 32;
inline constexpr std::int64_t usual_max_gamma_of_runs = 16;
inline constexpr double default_min_gain = 0.05;
/// In tokens.
inline constexpr double largest_context = 1e9;
/// Gammas listed one by one in what is printed of a plan.
inline constexpr std::int64_t listed_gammas = 1000;

/// What is asked of an acceptance and a cost. Members are what the options of `specdec plan` of that name say.
struct PlanQuestion {
  /// Sequences decoded together, each in (0, 65536], rising; empty: those that were measured, else 1.
  std::vector<double> batch = {};
  /// Tokens in the cache per sequence, each in [0, largest_context], rising; empty: that of the measurements, else 0.
  std::vector<double> context = {};
  /// The schedule covers batch 1 to this one; empty: the largest batch.
  std::optional<std::int64_t> max_num_seqs = {};
  /// g: speculation is worth it where it is at least 1 + g times as fast, >= 0; 0.05 where it is not given.
  std::optional<double> min_gain = {};
  /// In use at every batch, or by batch; not both.
  std::optional<std::int64_t> gamma = {};
  std::vector<planning::ScheduleStretch> schedule = {};
  /// Largest acceptable loss of what is in use to what is recommended, [0, 1].
  std::optional<double> max_regret = {};
  /// Largest gamma to recommend and to show, [1, largest_max_gamma].
  std::optional<std::int64_t> max_gamma = {};
  /// Relative loss of speedup up to which a gamma counts as near-optimal, (0, 0.5].
  double tolerance = 0.01;
  /// What lies outside of what was measured decides, too.
  bool extrapolate = false;
  /// Also for generations of so many tokens; by the closed forms alone.
  std::optional<std::int64_t> tokens = {};
  /// Draft operations / target operations per token; c where it is not given. By the closed forms alone.
  std::optional<double> c_hat = {};
  /// Write a configuration for this engine, which it reads from the file of that name.
  std::optional<planning::Engine> emit = {};
  std::string config_file = {};

  /// The largest gamma that is compared at a point, as far as acceptance and cost are known: max_gamma, else `usual` or
  /// the gamma in use where that is larger; at most planning::largest_scanned_gamma.
  std::int64_t largest_compared_gamma(std::int64_t usual) const;
};

/// A draft that could be deployed.
struct Draft {
  /// Different from that of every other one.
  std::string name = "draft";
  Acceptance acceptance;
  Cost cost;
};

/// What the closed forms of the paper say of one stated acceptance at a constant cost, for all gammas without end.
struct ClosedForm {
  planning::PlanQuestion question;
  planning::Plan plan;
  /// Why the plan has no point; empty where it has one.
  std::string no_point;

  bool regret_too_large() const { return plan.deployed && plan.deployed->exceeds_max_regret; }
  /// The drafts that the acceptance was measured over; 0 where it holds for any number.
  std::int64_t measured() const { return question.measured_at.value_or(question.acceptance.measured_positions()); }
};

/// What to do at one batch and context.
struct Recommendation {
  double batch = 1;
  double context = 0;
  /// Whether the intervals bear out what follows.
  planning::Verdict verdict = planning::Verdict::cannot_tell;
  /// The best gamma by the estimate, 0 for plain decoding; empty where none has a price, or none is best.
  std::optional<std::int64_t> gamma;
  /// Of that gamma over plain decoding, with its 95% interval where there is one.
  std::optional<estimate::Estimate> speedup;
};

/// What to do, and what that gains.
struct Plan {
  PlanQuestion question;
  /// As many as the plan has; none where benchmark runs bring their own acceptance.
  std::vector<Draft> drafts;
  /// Gamma, draft and verdict by batch and context; without drafts where gammas are too large for a point.
  planning::DeploymentPlan deployment;
  /// The same where rounds that were taken as independent count a third; empty where none were.
  std::optional<planning::DeploymentPlan> at_design_effect_3;
  /// Where one stated acceptance and a constant cost are all there is.
  std::optional<ClosedForm> closed_form;
  std::optional<planning::BenchPlan> bench;
  /// Of benchmark runs: the one to buy next, where one is worth its time.
  std::optional<planning::NextRun> next_run;
  std::string target_model;
  double min_gain = default_min_gain;
  /// Times are seconds.
  bool in_seconds = false;
  /// The largest gamma compared.
  std::int64_t max_gamma = usual_max_gamma;
  /// What is in use, where that was said.
  std::vector<planning::ScheduleStretch> deployed;
  std::optional<planning::EngineConfig> config;
  /// The server that the next run is made of: that of `emit`, else that of runs, logs, counters or timings, in this
  /// order, as these name it.
  std::optional<std::string> engine;
  /// Why the draft that is shown cannot draft for the target at all; empty where nothing says so.
  std::string misfit;
  /// What of the weights the device's memory does not hold; empty where it holds them, or nothing is known of it.
  std::string shortfall;
  /// Why the runs that price rounds cannot have been as they say; empty where nothing says so.
  std::string impossible;
  std::vector<std::string> files;
  /// What the files of hardware and models describe.
  NamedSpecs specs;
  std::vector<UsedPreset> presets;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;
  /// The drafts that may be as fast as the recommended one at every point, by the intervals of both acceptances and by
  /// the replicates of their costs, which are paired: that it is faster is by the estimate alone.
  std::vector<std::size_t> drafts_not_told_apart;

  /// At each point, in order of context, then batch; at least one.
  std::vector<Recommendation> recommendations() const;
  bool has_points() const { return !deployment.drafts.empty(); }
  /// The draft whose points are shown: the recommended one, else the first.
  std::size_t shown() const { return deployment.recommended_draft.value_or(0); }
  const planning::DraftPlan& shown_plan() const { return deployment.drafts[shown()]; }
  const std::vector<planning::PointPlan>& points() const { return shown_plan().points; }
  bool has_roofline() const { return !drafts.empty() && drafts[shown()].cost.roofline != nullptr; }
  bool cost_from_log() const { return !drafts.empty() && drafts.front().cost.from_log; }
  bool extrapolates() const { return question.extrapolate; }
  /// Whether the intervals of a draft hold no sampling error of its acceptance; where none is named, of the one shown.
  bool lacks_sampling(std::size_t draft) const;
  bool lacks_sampling() const { return lacks_sampling(shown()); }
  /// Of the draft that is shown.
  const cost::RoundCost& cost() const { return bench ? *bench->cost : *drafts[shown()].cost.rounds; }
  /// What is in use is behind what is recommended by more than was accepted.
  bool exceeds_max_regret() const;
};

/// Plans one draft, or chooses among several.
///
/// With one stated acceptance, constants and neither batch, context, schedule nor engine, the closed forms answer for
/// all gammas, and their one point stands beside them.
/// @throws QuestionError for a value outside its range, for what goes not together, and where an engine asked for would
///   not start; std::domain_error
Plan plan(const Acceptance& acceptance, const Cost& cost, const PlanQuestion& question = {});
/// @param drafts  at least one
Plan plan(std::vector<Draft> drafts, const PlanQuestion& question = {});

/// Results of benchmarks of a server, plain and speculative, answers of llama-server with their timings, or tables of
/// runs.
struct BenchFiles {
  std::vector<std::string> bench;
  /// Runs to predict, which are used for nothing else.
  std::vector<std::string> holdout = {};
  /// Where the files are of several.
  std::optional<std::string> model = {};
  DraftWords draft = {};
  /// Drafted tokens of a round, where the files do not say it.
  std::optional<std::int64_t> at = {};
  /// Prices what lies beyond the runs by its shape, scaled to the nearest of them; made with `model` and `draft`.
  std::optional<Cost> hardware = {};
  /// What a speculative round takes that those of the runs did not hold: seconds, and plain target steps; >= 0.
  std::optional<double> overhead_seconds = {};
  std::optional<double> overhead = {};
  /// The engine's acceptance rule, where it is known.
  std::optional<traces::AcceptanceRule> acceptance = {};
};

/// Plans from what a server was measured to do. Component `sources`.
/// @param acceptance  to plan with instead of what the runs accepted
/// @throws QuestionError, traces::FileError, std::domain_error
Plan plan_runs(const BenchFiles& files, const std::optional<Acceptance>& acceptance = {},
               const PlanQuestion& question = {});

/// What bounds the target's pass of a round: "weights", "cache", ...; empty where hardware does not price it.
std::optional<std::string_view> bound_of(const Plan& plan, const planning::PointPlan& point, std::int64_t gamma);
/// Whether two contexts are one for a reader, within a tenth: those of runs of the same lengths differ a little.
bool same_context(double a, double b);
bool has_several_contexts(const Plan& plan);

/// Where a row's speedup lies by what was typed of the acceptance, lengths or an interval of rates; empty where that is
/// one rate.
std::optional<estimate::Interval> speedup_interval(const Acceptance& acceptance, const planning::PlanRow& row);

}  // namespace specdec::planner
