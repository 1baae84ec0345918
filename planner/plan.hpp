#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planning/bench_plan.hpp"
#include "analysis/planning/closed_form.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "analysis/planning/next_run.hpp"
#include "planner/acceptance.hpp"
#include "planner/assumption.hpp"
#include "planner/cost.hpp"

/// Questions about speculative decoding and their answers: an Acceptance and a Cost give a Plan.
namespace specdec::planner {

inline constexpr std::int64_t largest_max_gamma = 100'000;
/// The default for plans over points, and from benchmark runs.
inline constexpr std::int64_t usual_max_gamma = 32;
inline constexpr std::int64_t usual_max_gamma_of_runs = 16;
inline constexpr double default_min_gain = 0.05;
/// In tokens.
inline constexpr double largest_context = 1e9;

/// A question about an acceptance and a cost. Members correspond to the options of `specdec plan` of the same name.
struct PlanQuestion {
  /// Sequences decoded together, each in (0, 65536], in increasing order; empty: the measured ones, else 1. A cost of
  /// constants answers the first alone, at which they hold.
  std::vector<double> batch = {};
  /// Tokens in the cache per sequence, each in [0, largest_context], increasing; empty: the measured ones, else 0.
  std::vector<double> context = {};
  /// The schedule covers batches 1 to this one; empty: the largest batch.
  std::optional<std::int64_t> max_num_seqs = {};
  /// g: speculation is worthwhile if it is at least 1 + g times as fast, >= 0; 0.05 if not given.
  std::optional<double> min_gain = {};
  /// The gamma in use at every batch, or by batch; not both.
  std::optional<std::int64_t> gamma = {};
  std::vector<planning::ScheduleStretch> schedule = {};
  /// Largest acceptable loss of the gamma in use relative to the recommended one, [0, 1].
  std::optional<double> max_regret = {};
  /// Largest gamma to recommend and to show, [1, largest_max_gamma].
  std::optional<std::int64_t> max_gamma = {};
  /// Also plan generations of this many tokens; closed forms only.
  std::optional<std::int64_t> tokens = {};
  /// Draft operations / target operations per token; c if not given. Closed forms only.
  std::optional<double> c_hat = {};
  /// Write a configuration for this engine, which reads it from the file of that name.
  std::optional<planning::Engine> emit = {};
  std::string config_file = {};
  /// Plan batch and context alone, without the schedule over all batches; for many questions at once. No option.
  bool points_only = false;

  /// The largest gamma that is compared at a point, as far as acceptance and cost are known: max_gamma, else the larger
  /// of `usual` and the gamma in use; at most planning::largest_scanned_gamma.
  std::int64_t largest_compared_gamma(std::int64_t usual) const;
};

/// A draft that could be deployed.
struct Draft {
  /// Must differ from all others.
  std::string name = "draft";
  Acceptance acceptance;
  Cost cost;
};

/// The recommendation for one batch and context.
struct Recommendation {
  double batch = 1;
  double context = 0;
  /// That drafts gain what is asked for, and the share of worlds in which they do.
  worlds::Certainty certainty = worlds::Certainty::open;
  double share = 0;
  /// 0 for plain decoding.
  std::int64_t gamma = 0;
  /// Speedup of that gamma over plain decoding, with its 95% interval if there is one.
  estimate::Estimate speedup;
};

/// The recommended decisions and their gains.
struct Plan : Provenance {
  PlanQuestion question;
  /// All drafts of the plan; none if benchmark runs bring their own acceptance.
  std::vector<Draft> drafts;
  /// Gamma, draft and how sure it is by batch and context.
  planning::DeploymentPlan deployment;
  /// What the paper's formulas say besides: of one acceptance rate at a constant cost.
  std::optional<planning::ClosedForm> closed_form;
  std::optional<planning::BenchPlan> bench;
  /// For benchmark runs: the expected regret and the runs that would lower it.
  std::optional<planning::RunValues> run_values;
  std::string target_model;
  double min_gain = default_min_gain;
  /// True if times are in seconds.
  bool in_seconds = false;
  /// The largest gamma compared.
  std::int64_t max_gamma = usual_max_gamma;
  /// The gammas in use, if stated.
  std::vector<planning::ScheduleStretch> deployed;
  /// What schedules cost the engine to write for, else the one that was measured; nothing where neither is named.
  worlds::SchedulePrices schedule_prices;
  std::optional<planning::EngineConfig> config;
  /// The server for the next run: that of `emit`, else the one named by runs, logs, counters or timings, in this
  /// order.
  std::optional<std::string> engine;
  /// Of each draft the reason why the server that is asked for, or any if none is, does not start with it; empty if
  /// there is none.
  std::vector<std::string> misfits;
  /// The weights, or the caches beside them, that do not fit into what servers take of the device's memory, or all of
  /// it for engines whose configuration does not say; empty if all fits, or the memory is unknown.
  std::string shortfall;
  /// The same of each point that is shown alone.
  std::vector<std::string> shortfalls;
  /// The reason why the runs that price rounds cannot have been as stated; empty if there is none.
  std::string impossible;
  /// The hardware and models described by files.
  NamedSpecs specs;
  /// At each point, in order of context, then batch; at least one.
  std::vector<Recommendation> recommendations() const;
  /// The draft whose points are shown: the recommended one, else the first.
  std::size_t shown() const { return deployment.recommended_draft.value_or(0); }
  const planning::DraftPlan& shown_plan() const { return deployment.drafts[shown()]; }
  const std::vector<planning::PointPlan>& points() const { return shown_plan().points; }
  /// The run to make next; empty if none is worth its time.
  std::optional<planning::NextRun> next_run() const { return run_values ? run_values->next() : std::nullopt; }
  bool has_roofline() const { return !drafts.empty() && drafts[shown()].cost.roofline != nullptr; }
  bool cost_from_log() const { return !drafts.empty() && drafts.front().cost.from_log; }
  /// The reason why the acceptance of the draft that is shown decides nothing; empty if there is none.
  std::string refused() const {
    return shown() < drafts.size() ? drafts[shown()].acceptance.curve->refused() : std::string();
  }
  /// The reason why no server starts with the draft that is shown; empty if there is none.
  std::string misfit() const { return shown() < misfits.size() ? misfits[shown()] : std::string(); }
  /// The cost of the draft that is shown.
  const cost::RoundCost& cost() const { return cost(shown()); }
  const cost::RoundCost& cost(std::size_t draft) const {
    return bench ? *bench->costs[draft] : *drafts[draft].cost.rounds;
  }
  /// True for the paper's costs, multiples of a step, which hold at the batch at which somebody measured them.
  bool costs_hold_at_one_batch() const;
  /// True if the gamma in use is behind the recommended one by more than the accepted loss.
  bool exceeds_max_regret() const { return deployment.exceeds_max_regret; }
};

/// Plans one draft, or chooses among several.
/// @throws QuestionError for a value outside its range, for incompatible members, and if a requested engine would
///   not start; std::domain_error
Plan plan(const Acceptance& acceptance, const Cost& cost, const PlanQuestion& question = {});
/// @param drafts  at least one draft
Plan plan(std::vector<Draft> drafts, const PlanQuestion& question = {});

/// @throws QuestionError for a version that is none of the engine's
/// Results of server benchmarks, plain and speculative, answers of llama-server with their timings, or tables of
/// runs.
struct BenchFiles {
  std::vector<std::string> bench;
  /// Runs to predict, which are used for nothing else.
  std::vector<std::string> holdout = {};
  /// Required if the files cover several.
  std::optional<std::string> model = {};
  DraftWords draft = {};
  /// Drafted tokens per round, if the files do not state it.
  std::optional<std::int64_t> at = {};
  /// Prices points beyond the runs by its shape, scaled to the nearest of them; made with `model` and `draft`.
  std::optional<Cost> hardware = {};
  /// Extra time of a speculative round that the rounds of the runs lack: seconds, and plain target steps; >= 0.
  std::optional<double> overhead_seconds = {};
  std::optional<double> overhead = {};
  /// The engine's acceptance rule, if known.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// As in planning::BenchQuestion.
  bool prompts_apart = false;
  std::optional<double> prompt_tokens_per_second = {};
};

/// Makes a plan from a server's measurements. Component `sources`.
/// @param acceptance  to plan with instead of the acceptance of the runs
/// @throws QuestionError, traces::FileError, std::domain_error
Plan plan_runs(const BenchFiles& files, const std::optional<Acceptance>& acceptance = {},
               const PlanQuestion& question = {});

/// The bottleneck of the target's pass of a round: "weights", "cache", ...; empty if hardware does not price it.
std::optional<std::string_view> bound_of(const Plan& plan, const planning::PointPlan& point, std::int64_t gamma);
/// True if two contexts are equal for a reader, within a tenth: those of runs of the same lengths differ a little.
bool same_context(double a, double b);
bool has_several_contexts(const Plan& plan);

}  // namespace specdec::planner
