#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "traces/serving/serving_counts.hpp"

/// A plan from nothing but benchmark runs of a server: plain runs and speculative ones over concurrency.
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
  /// To plan with instead of what the runs accepted, and the clusters behind its interval. The runs are predicted by
  /// their own all the same.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance = {};
  std::optional<std::int64_t> clusters = {};
  /// Where to plan, rising; where one is empty, at the batches or contexts of the runs. Where both are, the points are
  /// those of the plain runs.
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

/// A run against what the other runs say it should have been.
struct BenchPrediction {
  std::filesystem::path file;
  std::int64_t line = 0;
  /// Seconds per output token; nothing where the other runs do not determine it.
  std::optional<double> predicted;
  double measured = 0;
  /// predicted / measured - 1
  std::optional<double> relative_error;
  /// Why there is no prediction.
  std::string reason;
};

/// A speculative run beside the plain one of the same model, lengths and concurrency.
struct BenchSpeedup {
  /// Places in BenchPlan::runs.
  std::size_t baseline = 0;
  std::size_t speculative = 0;
  /// Ratio of the seconds per output token.
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
  /// Fitted to the runs and windows.
  std::shared_ptr<const cost::RoundCost> cost;
  /// Of the question, else of the runs.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  /// One draft. Intervals are widened by what the predictions of left-out runs missed.
  DeploymentPlan plan;
  std::vector<PlanNote> notes;
};

/// How costs are fitted to what a server ran.
cost::FitOptions fit_of_runs();

/// Plans from benchmark runs.
///
///   batch = output tokens/s x mean seconds per output token;   seconds per round = that mean x tokens per step
///
/// Source:   docs/theory.md#plans-over-batch-and-context
/// @throws traces::FileError for a run that lacks what is needed, contradicts itself or another one, or matches none
/// @throws std::domain_error if a value of the question is outside its range
BenchPlan plan_bench(const BenchQuestion& question);

}  // namespace specdec::planning
