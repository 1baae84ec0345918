#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/gamma_comparison.hpp"
#include "traces/serving/serving_counts.hpp"

/// A plan from nothing but benchmark runs of a server: speculative ones, and plain ones, over concurrency.
namespace specdec::planning {

struct BenchQuestion {
  /// Runs with a BenchRun each, in any order; others are refused.
  std::vector<traces::ServingCounts> runs;
  /// Windows of engines' logs, which price rounds beside the runs: cost::log_rounds.
  std::vector<traces::ServingCounts> windows = {};
  /// Runs that are predicted from `runs` and used for nothing else.
  std::vector<traces::ServingCounts> holdout = {};
  /// The model to plan for; needed where the runs are of several.
  std::optional<std::string> model = {};
  /// The draft to plan for; needed where the speculative runs name several.
  std::optional<std::string> draft = {};
  /// Of the speculative runs whose counts do not say it, >= 1.
  std::optional<std::int64_t> gamma = {};
  /// How drafts were made, which says what their cost depends on.
  cost::DraftKind kind = cost::DraftKind::model;
  /// Prices what lies beyond the runs, by its shape: cost::AnchoredCost. Null: the fit goes on.
  std::shared_ptr<const cost::RoundCost> beyond = {};
  /// What a speculative round takes in the plan and in `holdout` that those of the runs did not hold, in seconds and in
  /// plain target steps, each >= 0.
  double overhead_seconds = 0;
  double overhead_steps = 0;
  /// To plan with instead of what the runs accepted, and the clusters behind its interval. The runs are predicted by
  /// their own all the same, but for those that do not say how much they accepted.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance = {};
  std::optional<std::int64_t> clusters = {};
  /// Where to plan, rising; where one is empty, at the batches or contexts of the runs. Where both are, the points are
  /// those of the plain runs, or of all where none is plain.
  std::vector<double> batches = {};
  std::vector<double> contexts = {};
  /// As in DeploymentQuestion; the largest batch where it is not given.
  std::optional<std::int64_t> schedule_up_to = {};
  /// As in DeploymentQuestion.
  std::int64_t max_gamma = 16;
  double tolerance = 0.01;
  double min_gain = 0.05;
  std::vector<ScheduleStretch> deployed = {};
  std::optional<double> max_regret = {};
  /// Go beyond the batches, contexts and gammas that were run.
  bool extrapolate = false;
  std::uint64_t seed = 0;
};

/// What a run says of its rounds.
struct BenchFigures {
  std::filesystem::path file;
  std::int64_t line = 0;
  std::string model;
  std::optional<double> max_concurrency;
  /// Tokens per request, means.
  double input_tokens = 0;
  double output_tokens = 0;
  /// 0 for a plain run.
  std::int64_t gamma = 0;
  /// Little's law: output tokens/s times seconds per output token.
  double batch = 1;
  /// input_tokens + output_tokens / 2: the mean over a request's rounds.
  double context = 0;
  double tokens_per_step = 1;
  double seconds_per_output_token = 0;
  /// seconds_per_output_token tokens_per_step.
  double round_seconds = 0;
};

/// A figure of a held-out run against what the plan says of it.
struct PredictedFigure {
  double predicted = 0;
  double measured = 0;
  /// 95%, of the measured figure: the plan's error and the run's own.
  estimate::Interval ci95 = {0, 0};

  bool outside() const { return measured < ci95.lo || ci95.hi < measured; }
};

/// A run against what the other runs say it should have been.
struct BenchPrediction {
  std::filesystem::path file;
  std::int64_t line = 0;
  /// Seconds per output token; nothing where the other runs do not determine it.
  std::optional<double> predicted;
  double measured = 0;
  /// predicted / measured - 1
  std::optional<double> relative_error;
  /// 95%, of a run that is held out: the same errors as in the plan.
  std::optional<estimate::Interval> ci95;
  /// What the time is made of, of a run that is held out: seconds of a round, and tokens per step where it counted
  /// them.
  std::optional<PredictedFigure> round, tokens;
  /// Why there is no prediction.
  std::string reason;

  /// What lies outside its interval: "rounds", "acceptance", "rounds and acceptance", "time" where both together alone
  /// do; empty where nothing does. With every interval at 95%, one in twenty does by chance.
  std::string_view drifted() const {
    const bool rounds = round && round->outside(), acceptance = tokens && tokens->outside();
    if (rounds && acceptance) return "rounds and acceptance";
    if (rounds) return "rounds";
    if (acceptance) return "acceptance";
    return ci95 && (measured < ci95->lo || ci95->hi < measured) ? "time" : "";
  }
};

/// A speculative run beside the plain one of the same model, lengths and concurrency.
struct BenchSpeedup {
  /// Places in BenchPlan::runs.
  std::size_t baseline = 0;
  std::size_t speculative = 0;
  /// Ratio of the seconds per output token. The interval is that of the measurement, by the spread of repeated runs;
  /// nothing where no run is repeated.
  estimate::Estimate speedup;
};

struct BenchPlan {
  std::string model;
  /// Rising by lengths, concurrency (batch where that has no limit) and gamma.
  std::vector<BenchFigures> runs;
  std::vector<BenchSpeedup> speedups;
  /// One for each of `runs`.
  std::vector<BenchPrediction> leave_one_out;
  /// Median of the absolute relative errors; nothing where no run was predicted.
  std::optional<double> leave_one_out_error;
  std::vector<BenchPrediction> backtest;
  /// At each point the gammas from the least that was run to the largest, where no run is plain and no speedup known.
  std::vector<GammaComparison> relative;
  /// Fitted to the runs and windows, beyond them by the question's other cost, with the overhead.
  std::shared_ptr<const cost::RoundCost> cost;
  /// Of the logarithms of two rounds' seconds, without the overhead; and the standard deviation of one more run's.
  std::function<double(const cost::RoundPoint&, const cost::RoundPoint&)> log_covariance;
  double run_error = 0;
  /// Of the question, else of the runs.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  /// One draft. Its intervals are made from what the predictions of left-out runs missed, and hold the speedups.
  DeploymentPlan plan;
  std::vector<Note> notes;
};

/// Plans from benchmark runs.
///
///   batch = output tokens/s x mean seconds per output token;   seconds per round = that mean x tokens per step
///
/// Without plain runs the price of plain decoding is what is usual, every point lies beyond what was measured, and the
/// drafts are compared with each other. A run that does not say its tokens per step has those of the other runs at its
/// gamma, or where an acceptance is given of that. An acceptance that is given and is not what the runs counted is noted
/// ("acceptance_contradicts_runs").
/// Source:   docs/theory.md#from-benchmark-runs
/// @throws traces::FileError for a run that lacks what is needed, contradicts itself or another one, or matches none
/// @throws std::domain_error if a value of the question is outside its range
BenchPlan plan_bench(const BenchQuestion& question);

}  // namespace specdec::planning
