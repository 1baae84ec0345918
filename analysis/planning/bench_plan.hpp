#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "traces/serving/serving_counts.hpp"

/// A plan from benchmark runs of a server alone: speculative and plain runs, over concurrency.
namespace specdec::planning {

/// Code of the warning that the same setting took other times.
inline constexpr std::string_view runs_disagree = "runs_disagree";

struct BenchQuestion {
  /// Runs with a BenchRun each, in any order; others are rejected.
  std::vector<traces::ServingCounts> runs;
  /// Windows of engines' logs, which supplement the runs in pricing rounds: cost::log_rounds.
  std::vector<traces::ServingCounts> windows = {};
  /// Runs that are predicted from `runs` and used for nothing else.
  std::vector<traces::ServingCounts> holdout = {};
  /// The model to plan for; required if the runs cover several.
  std::optional<std::string> model = {};
  /// The draft to plan for; required if the speculative runs name several.
  std::optional<std::string> draft = {};
  /// The gamma of speculative runs whose counts do not state it, >= 1.
  std::optional<std::int64_t> gamma = {};
  /// The way drafts were made, which determines what their cost depends on.
  cost::DraftKind kind = cost::DraftKind::model;
  /// False where nothing tells the kind, and `kind` is a guess: then rounds and acceptance are those of any kind.
  bool kind_told = true;
  /// As in cost::FitOptions.
  bool has_kernel_step = false;
  /// Prices points beyond the runs, by its shape: cost::AnchoredCost. Null: the fit is extended.
  std::shared_ptr<const cost::RoundCost> beyond = {};
  /// The extra time of a speculative round in the plan and in `holdout` that the rounds of the runs lacked, in seconds
  /// and plain target steps, each >= 0.
  double overhead_seconds = 0;
  double overhead_steps = 0;
  /// True where prompts are served by themselves, as in a capacity: rounds are priced without those of other requests,
  /// whose reading is taken out of the runs' times at this rate, > 0; without one, by what the runs tell of it.
  bool prompts_apart = false;
  std::optional<double> prompt_tokens_per_second = {};
  /// The acceptance to plan with instead of that of the runs. The runs are still predicted from their own acceptance, if
  /// one states it.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance = {};
  /// Where to plan, in increasing order; an empty list means the batches or contexts of the runs. If both are empty,
  /// the points are those of the plain runs, or of all runs if none is plain.
  std::vector<double> batches = {};
  std::vector<double> contexts = {};
  /// As in DeploymentQuestion; the largest batch if not given and there are several batches, or `schedules` asks for one.
  std::optional<std::int64_t> schedule_up_to = {};
  bool schedules = false;
  worlds::SchedulePrices schedule_prices = {};
  /// As in DeploymentQuestion.
  std::int64_t max_gamma = 16;
  double min_gain = 0.05;
  std::vector<ScheduleStretch> deployed = {};
  std::optional<double> max_regret = {};
  std::uint64_t seed = 0;
};

/// The figures of one run's rounds.
struct BenchFigures {
  std::filesystem::path file;
  std::int64_t line = 0;
  std::string model;
  std::optional<double> max_concurrency;
  /// Mean tokens per request.
  double input_tokens = 0;
  double output_tokens = 0;
  /// Requests that they are the mean of; 0 where the run does not say it.
  double requests = 0;
  /// 0 for a plain run; the depth of a tree.
  std::int64_t gamma = 0;
  std::optional<cost::DraftTree> tree = {};
  /// The start of the server that ran it; empty where nothing tells.
  std::string server;
  /// Little's law: output tokens/s times seconds per output token.
  double batch = 1;
  /// input_tokens + output_tokens / 2: the mean over a request's rounds.
  double context = 0;
  double tokens_per_step = 1;
  double seconds_per_output_token = 0;
  /// seconds_per_output_token tokens_per_step.
  double round_seconds = 0;
};

/// True if a measured figure is more than `widths` of the interval's half-widths, in logarithms, from its prediction.
inline bool is_outside(double predicted, double measured, const estimate::Interval& ci95, double widths) {
  const double off = std::log(measured / predicted);
  return off > widths * std::log(ci95.hi / predicted) || off < widths * std::log(ci95.lo / predicted);
}

/// A figure of a held-out run compared with the plan's prediction.
struct PredictedFigure {
  double predicted = 0;
  double measured = 0;
  /// 95% interval of the measured figure, from the plan's error and the run's own.
  estimate::Interval ci95 = {0, 0};

  /// True if it is more than `widths` of the interval's half-widths, in logarithms, from the prediction.
  bool outside(double widths) const { return is_outside(predicted, measured, ci95, widths); }
};

/// A run compared with the prediction from the other runs.
struct BenchPrediction {
  std::filesystem::path file;
  std::int64_t line = 0;
  /// Seconds per output token; empty if the other runs do not determine it.
  std::optional<double> predicted;
  double measured = 0;
  /// predicted / measured - 1
  std::optional<double> relative_error;
  /// 95% interval for a held-out run: the same errors as in the plan.
  std::optional<estimate::Interval> ci95;
  /// The parts of the time of a held-out run: seconds of a round, and tokens per step if it counted
  /// them.
  std::optional<PredictedFigure> round, tokens;
  /// The reason why there is no prediction.
  std::string reason;

  /// Half-widths of a 95% interval beyond which a figure has drifted: so many that one of all the figures that the
  /// held-out runs compare is beyond by chance once in twenty times (Bonferroni, of normal errors).
  double widths = 1;

  /// The figures beyond that: "rounds", "acceptance", "rounds and acceptance", "time" if only their product is; empty
  /// if nothing is.
  std::string_view drifted() const {
    const bool rounds = round && round->outside(widths), acceptance = tokens && tokens->outside(widths);
    if (rounds && acceptance) return "rounds and acceptance";
    if (rounds) return "rounds";
    if (acceptance) return "acceptance";
    return predicted && ci95 && is_outside(*predicted, measured, *ci95, widths) ? "time" : "";
  }
};

/// A speculative run paired with the plain one of the same model, lengths and concurrency.
struct BenchSpeedup {
  /// Indices into BenchPlan::runs.
  std::size_t baseline = 0;
  std::size_t speculative = 0;
  /// Ratio of the seconds per output token, with the errors of both runs.
  estimate::Estimate speedup;
};

struct BenchPlan {
  std::string model;
  /// In increasing order of lengths, concurrency (batch if that has no limit) and gamma.
  std::vector<BenchFigures> runs;
  std::vector<BenchSpeedup> speedups;
  /// One entry for each of `runs`.
  std::vector<BenchPrediction> leave_one_out;
  /// Median of the absolute relative errors; empty if no run was predicted.
  std::optional<double> leave_one_out_error;
  std::vector<BenchPrediction> backtest;
  /// Fitted to the runs and windows, beyond them the question's other cost, including the overhead.
  std::shared_ptr<const cost::RoundCost> cost;
  /// Standard deviation of ln(measured / true) of one more run.
  double run_error = 0;
  /// True where nothing told how drafts are made and one gamma ran: then the kind would tell most of what others cost.
  bool kind_would_tell = false;
  /// The question's acceptance if given, else that of the runs, or of the kind of drafts where no run states it; null
  /// if all drafts were trees.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  /// The plan of the chains that ran, if any did, and then that of each tree, whose acceptance is its own.
  DeploymentPlan plan;
  /// The question that it answers.
  DeploymentQuestion question;
  /// The price of each draft of `plan`; replicates of all belong together.
  std::vector<std::shared_ptr<const cost::RoundCost>> costs;
  std::vector<Note> notes;
};

/// Makes a plan from benchmark runs.
///
///   batch = output tokens/s x mean seconds per output token;   seconds per round = that mean x tokens per step
///
/// Drafts that branch are known by their shape (ServingCounts::gamma, top_k, verified_per_round): each tree that ran is
/// a draft of its own, which shares with all others what rounds cost and with none what is accepted. Trees are left out
/// of a plan with another acceptance, which is one of chains ("tree_left_out").
///
/// Without plain runs the price of plain decoding is a typical value, every point lies beyond what was measured, and
/// the drafts are compared with each other. A given acceptance that disagrees with the runs' counts is noted
/// ("acceptance_contradicts_runs").
///
/// Acceptance and cost are drawn together: world i of plan.acceptance and replicate i of plan.cost are one world. In it
/// the rounds of a run took its seconds per token times the tokens per step of that world, so that the ratio of two
/// timed runs is what was measured in every world, whatever is not known of acceptance. Runs that do not state their
/// tokens per step share one acceptance, that of the other runs, the given one, or that of drafts of their kind, and
/// worlds in which the runs are improbable are drawn less often. Source:   docs/theory.md#from-benchmark-runs
/// @throws traces::FileError for a run that lacks what is needed, contradicts itself or another one, or matches none
/// @throws std::domain_error if a value of the question is outside its range
BenchPlan plan_bench(const BenchQuestion& question);

}  // namespace specdec::planning
