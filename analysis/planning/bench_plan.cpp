#include "analysis/planning/bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/planning/bench_acceptance.hpp"

namespace specdec::planning {
namespace {

using traces::ServingCounts;

/// Lengths of two runs that differ by less than this factor are the same workload; outputs vary from run to run.
constexpr double same_lengths = 1.1;
/// Repeated runs that differ by more than this factor contradict each other.
constexpr double runs_agree = 1.2;
/// A batch within this factor of the runs' one batch is that batch.
constexpr double one_batch = 1.25;
/// Share by which the seconds of a round may differ between the splits that fit; the replicates span it.
constexpr double split_tolerance = 0.1;

struct Run {
  const ServingCounts* counts = nullptr;
  BenchFigures figures;
  cost::ObservedRound round;
  /// Number of its workload.
  std::size_t workload = 0;

  bool speculative() const { return figures.gamma > 0; }
  CountedRun counted() const { return {counts, figures.gamma}; }
};

using Runs = std::vector<Run>;

std::string concurrency_text(const BenchFigures& figures) {
  return figures.max_concurrency ? fmt::format("concurrency {:g}", *figures.max_concurrency)
                                 : std::string("no limit of concurrency");
}

bool is_speculative(const ServingCounts& run) {
  if (run.rounds.value_or(0) > 0) return true;
  if (run.drafted.value_or(0) > 0 || run.gamma.value_or(0) > 0) {
    throw run.refusal("rounds", "missing", "given, since drafts were made");
  }
  return false;
}

/// What the run drafted each round.
std::int64_t gamma_of(const ServingCounts& run, std::optional<std::int64_t> stated) {
  if (!is_speculative(run)) return 0;
  if (run.gamma) return *run.gamma;
  if (stated) return *stated;
  if (run.rounds.value_or(0) > 0 && run.drafted) {
    // Drafts that end early make the mean a little less than the length that was asked for.
    const double mean = *run.drafted / *run.rounds;
    if (mean > 0 && std::ceil(mean) - mean <= 0.05 * mean) return static_cast<std::int64_t>(std::ceil(mean));
    throw run.refusal("drafted tokens per round", fmt::format("{:g}", mean), "a whole number, or a stated gamma");
  }
  throw run.refusal("drafted tokens per round", "unknown", "counted by the run, or a stated gamma");
}

Run make_run(const ServingCounts& counts, std::optional<std::int64_t> stated_gamma) {
  if (!counts.bench) throw counts.refusal("document", "no result of a benchmark", "a benchmark run");
  if (counts.shape == traces::DraftShape::tree) {
    throw counts.refusal("the shape of drafts", "a tree", "a chain: trees have no gamma to plan");
  }
  const traces::BenchRun& bench = *counts.bench;
  Run run;
  run.counts = &counts;
  run.figures.gamma = gamma_of(counts, stated_gamma);
  const cost::BenchRounds rounds =
      cost::bench_rounds(counts, run.speculative() ? std::optional(static_cast<double>(run.figures.gamma)) : 0.0);
  run.round = rounds.round;
  run.figures.file = counts.file;
  run.figures.line = counts.line;
  run.figures.model = std::string(counts.label("model_name"));
  run.figures.max_concurrency = bench.max_concurrency;
  const double completed = bench.completed.value_or(bench.num_prompts.value_or(0));
  if (completed > 0) {
    run.figures.input_tokens = bench.total_input_tokens.value_or(0) / completed;
    run.figures.output_tokens = bench.total_output_tokens.value_or(0) / completed;
  }
  run.figures.batch = run.round.batch;
  run.figures.context = run.round.context.value_or(0);
  run.figures.tokens_per_step = rounds.tokens_per_step;
  run.figures.seconds_per_output_token = rounds.seconds_per_output_token;
  run.figures.round_seconds = run.round.seconds;
  return run;
}

std::string model_of(const BenchQuestion& question) {
  if (question.model) return *question.model;
  const std::string_view first = question.runs.front().label("model_name");
  for (const ServingCounts& run : question.runs) {
    if (run.label("model_name") == first) continue;
    throw run.refusal(
        "model", std::string(run.label("model_name")),
        fmt::format("{} as in {}, or one of the models chosen", first, question.runs.front().file.string()));
  }
  return std::string(first);
}

/// The one that is chosen, or the only one that speculative runs name; nothing where none is named.
std::optional<std::string> draft_of(const BenchQuestion& question, const Runs& runs) {
  const Run* first = nullptr;
  for (const Run& run : runs) {
    const std::string_view draft = run.counts->label("draft");
    if (!run.speculative() || draft.empty()) continue;
    if (first == nullptr) first = &run;
    const std::string_view other = first->counts->label("draft");
    if (draft == other) continue;
    const bool chosen = question.draft && std::any_of(runs.begin(), runs.end(), [&](const Run& one) {
                          return one.counts->label("draft") == *question.draft;
                        });
    if (chosen) return question.draft;
    throw run.counts->refusal(
        "draft", std::string(draft),
        fmt::format("{} as in {}, or one of the drafts chosen", other, first->counts->file.string()));
  }
  return first == nullptr ? std::nullopt : std::optional(std::string(first->counts->label("draft")));
}

Runs runs_of(const BenchQuestion& question, const std::string& model) {
  Runs runs;
  for (const ServingCounts& counts : question.runs) {
    if (counts.label("model_name") == model) runs.push_back(make_run(counts, question.gamma));
  }
  if (const auto draft = draft_of(question, runs)) {
    const auto of_another = [&](const Run& run) {
      const std::string_view its = run.counts->label("draft");
      return run.speculative() && !its.empty() && its != *draft;
    };
    runs.erase(std::remove_if(runs.begin(), runs.end(), of_another), runs.end());
  }
  return runs;
}

bool same_length(double a, double b) { return a == b || (a <= same_lengths * b && b <= same_lengths * a); }

bool same_workload(const BenchFigures& a, const BenchFigures& b) {
  return same_length(a.input_tokens, b.input_tokens) && same_length(a.output_tokens, b.output_tokens);
}

bool same_load(const Run& a, const Run& b) {
  return a.figures.max_concurrency == b.figures.max_concurrency &&
         a.counts->bench->request_rate == b.counts->bench->request_rate;
}

/// Rising by lengths, concurrency (batch where that has no limit) and gamma; lengths that are the same by and large
/// share a workload.
void sort_runs(Runs& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tie(a.figures.input_tokens, a.figures.output_tokens) <
           std::tie(b.figures.input_tokens, b.figures.output_tokens);
  });
  std::vector<BenchFigures> leaders;
  for (Run& run : runs) {
    const auto known = std::find_if(leaders.begin(), leaders.end(),
                                    [&](const BenchFigures& leader) { return same_workload(leader, run.figures); });
    run.workload = static_cast<std::size_t>(known - leaders.begin());
    if (known == leaders.end()) leaders.push_back(run.figures);
  }
  const auto key = [](const Run& run) {
    return std::tuple(run.workload, run.figures.max_concurrency.value_or(run.figures.batch), run.figures.gamma);
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return key(a) < key(b); });
}

std::vector<CountedRun> counted_runs(const Runs& runs, const Run* without = nullptr) {
  std::vector<CountedRun> counted;
  for (const Run& run : runs) {
    if (&run != without && run.speculative()) counted.push_back(run.counted());
  }
  return counted;
}

class BenchPlanner {
 public:
  explicit BenchPlanner(const BenchQuestion& question) : question_(question) {}
  BenchPlan plan();

 private:
  void note(std::string code, std::string message) { plan_.notes.push_back({std::move(code), std::move(message)}); }
  void read();
  void check_repeats();
  void read_windows();
  void join_batches();
  void fit();
  void predict_left_out();
  BenchPrediction prediction_of(const Run& run) const;
  void match();
  std::optional<std::int64_t> speculative_requests() const;
  void ask();
  void backtest();

  const BenchQuestion& question_;
  cost::FitOptions options_;
  BenchPlan plan_;
  Runs runs_;
  /// Those of the runs, in their order, and those of the windows.
  std::vector<cost::ObservedRound> rounds_;
  /// At which all rounds are taken to be, where they have one batch.
  std::optional<double> batch_;
  std::shared_ptr<const cost::FittedCost> cost_;
  /// Of the runs.
  std::shared_ptr<const BenchAcceptance> acceptance_;
  /// Root mean square of ln(predicted / measured) of the left-out runs' seconds per token, and their number.
  double left_out_error_ = 0;
  std::size_t left_out_count_ = 0;
};

void BenchPlanner::read() {
  if (question_.runs.empty()) throw std::invalid_argument("plan_bench: there are no runs");
  if (question_.gamma) core::require_in("plan_bench", "gamma", *question_.gamma, 1, largest_scanned_gamma);
  plan_.model = model_of(question_);
  runs_ = runs_of(question_, plan_.model);
  if (runs_.empty()) {
    throw std::invalid_argument(fmt::format("plan_bench: no run is of model {}", plan_.model));
  }
  sort_runs(runs_);
  for (const Run& run : runs_) {
    plan_.runs.push_back(run.figures);
    const auto& bench = *run.counts->bench;
    if (bench.completed && bench.num_prompts && *bench.completed < *bench.num_prompts) {
      note("requests_failed", fmt::format("{}: {:g} of {:g} requests were completed", run.counts->place(),
                                          *bench.completed, *bench.num_prompts));
    }
  }
  const auto speculative = [](const Run& run) { return run.speculative(); };
  if (std::none_of(runs_.begin(), runs_.end(), speculative)) {
    throw runs_.front().counts->refusal("drafted tokens", "none, as in all other runs",
                                        "a run with speculation among them");
  }
  if (std::all_of(runs_.begin(), runs_.end(), speculative)) {
    throw runs_.front().counts->refusal("drafted tokens", "some, as in all other runs", "a plain run among them");
  }
}

void BenchPlanner::check_repeats() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    for (std::size_t j = i + 1; j < runs_.size(); ++j) {
      const Run& a = runs_[i];
      const Run& b = runs_[j];
      if (a.workload != b.workload || a.figures.gamma != b.figures.gamma || !same_load(a, b)) continue;
      for (const char* name : {"label", "tag"}) {
        const std::string_view first = a.counts->label(name), second = b.counts->label(name);
        if (!a.speculative() || first.empty() || second.empty() || first == second) continue;
        note("labels_differ", fmt::format("{} and {} ran the same under the {}s {} and {}: are they of one draft?",
                                          a.counts->place(), b.counts->place(), name, first, second));
      }
      const double ratio = a.figures.seconds_per_output_token / b.figures.seconds_per_output_token;
      if (1 / runs_agree <= ratio && ratio <= runs_agree) continue;
      note("runs_disagree",
           fmt::format("{} and {} ran the same at {} with gamma {}, but took {:.4g} and {:.4g} ms per token",
                       a.counts->place(), b.counts->place(), concurrency_text(a.figures), a.figures.gamma,
                       1e3 * a.figures.seconds_per_output_token, 1e3 * b.figures.seconds_per_output_token));
    }
  }
}

void BenchPlanner::read_windows() {
  for (const Run& run : runs_) rounds_.push_back(run.round);
  if (question_.windows.empty()) return;
  const auto gamma = question_.gamma ? std::optional(static_cast<double>(*question_.gamma)) : std::nullopt;
  cost::LogRounds log = cost::log_rounds(question_.windows, gamma);
  note("rounds_of_logs",
       fmt::format("{} of {} windows of logs are steady: they price rounds at batches {:.4g} to {:.4g}",
                   log.steady_windows, log.windows, log.usual_batches().front(), log.usual_batches().back()));
  std::move(log.rounds.begin(), log.rounds.end(), std::back_inserter(rounds_));
}

void BenchPlanner::join_batches() {
  const auto [least, most] =
      std::minmax_element(rounds_.begin(), rounds_.end(),
                          [](const cost::ObservedRound& a, const cost::ObservedRound& b) { return a.batch < b.batch; });
  const double lo = least->batch, hi = most->batch;
  batch_ = cost::join_batches(rounds_);
  if (batch_ && hi > lo) {
    note("one_batch", fmt::format("the runs are at batches {:.4g} to {:.4g}, which are taken as {:.4g}: other batches "
                                  "need runs at another concurrency",
                                  lo, hi, *batch_));
  }
}

void BenchPlanner::fit() {
  options_ = fit_of_runs();
  options_.seed = question_.seed;
  options_.kind = question_.kind;
  options_.unidentified = question_.extrapolate ? cost::Unidentified::span : cost::Unidentified::refuse;
  cost_ = std::make_shared<cost::FittedCost>(rounds_, options_);
  acceptance_ = std::make_shared<BenchAcceptance>(counted_runs(runs_));
  plan_.cost = cost_;
  plan_.acceptance = question_.acceptance ? question_.acceptance : acceptance_;
  for (const cost::CostFinding& finding : cost_->findings()) note(finding.code, finding.message);
}

void BenchPlanner::predict_left_out() {
  const std::vector<cost::LeftOut> left_out = cost::leave_one_out(rounds_, options_, runs_.size());
  std::vector<double> relative;
  double tokens = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    BenchPrediction row;
    row.file = run.figures.file;
    row.line = run.figures.line;
    row.measured = run.figures.seconds_per_output_token;
    const std::vector<CountedRun> others = counted_runs(runs_, &run);
    if (!left_out[i].predicted_seconds) {
      row.reason = "the other runs do not determine what its rounds cost";
    } else if (run.speculative() && others.empty()) {
      row.reason = "no other run says what is accepted";
    } else {
      const double per_step =
          run.speculative() ? BenchAcceptance(others).tokens_per_step(run.figures.gamma).value : 1.0;
      row.predicted = *left_out[i].predicted_seconds / per_step;
      row.relative_error = *row.predicted / row.measured - 1;
      relative.push_back(std::abs(*row.relative_error));
      tokens += std::pow(std::log(*row.predicted / row.measured), 2);
    }
    plan_.leave_one_out.push_back(std::move(row));
  }
  if (rounds_.size() <= cost_->rank()) {
    note("cost_error_unknown",
         "there are not more runs than the cost has terms, so that the intervals know nothing of the cost's error");
  }
  if (relative.empty()) return;
  plan_.leave_one_out_error = core::quantile(relative, 0.5);
  left_out_count_ = relative.size();
  left_out_error_ = std::sqrt(tokens / static_cast<double>(left_out_count_));
}

BenchPrediction BenchPlanner::prediction_of(const Run& run) const {
  BenchPrediction row;
  row.file = run.figures.file;
  row.line = run.figures.line;
  row.measured = run.figures.seconds_per_output_token;
  const estimate::TokensPerStep tokens = acceptance_->tokens_per_step(run.figures.gamma);
  const double batch = run.figures.batch;
  const bool joined = batch_ && batch <= one_batch * *batch_ && *batch_ <= one_batch * batch;
  const cost::RoundPoint point = {run.figures.gamma, joined ? *batch_ : batch, run.figures.context,
                                  tokens.full_accepts};
  if (!cost_->answers(point)) {
    row.reason = "the runs do not determine what its rounds cost";
    return row;
  }
  row.predicted = cost_->round(point).total() / tokens.value;
  row.relative_error = *row.predicted / row.measured - 1;
  return row;
}

void BenchPlanner::match() {
  const Run* unmatched = nullptr;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (!run.speculative()) continue;
    std::optional<std::size_t> baseline;
    for (std::size_t j = 0; j < runs_.size(); ++j) {
      const Run& plain = runs_[j];
      if (plain.speculative() || plain.workload != run.workload || !same_load(plain, run)) continue;
      const auto distance = [&](std::size_t k) {
        return std::abs(std::log(runs_[k].figures.batch / run.figures.batch));
      };
      if (!baseline || distance(j) < distance(*baseline)) baseline = j;
    }
    if (!baseline) {
      unmatched = &run;
      note("unmatched_run",
           fmt::format("{} has no plain run of the same lengths at {}: it says what rounds cost and no speedup",
                       run.counts->place(), concurrency_text(run.figures)));
      continue;
    }
    BenchSpeedup speedup;
    speedup.baseline = *baseline;
    speedup.speculative = i;
    speedup.speedup.value = runs_[*baseline].figures.seconds_per_output_token / run.figures.seconds_per_output_token;
    speedup.speedup.method = "ratio of two runs";
    if (left_out_count_ > 1) {
      const boost::math::students_t t(static_cast<double>(left_out_count_));
      const double half = quantile(complement(t, 0.025)) * std::sqrt(2.0) * left_out_error_;
      speedup.speedup.ci95 = {speedup.speedup.value * std::exp(-half), speedup.speedup.value * std::exp(half)};
      speedup.speedup.method += ", each as uncertain as predictions of left-out runs were wrong";
    }
    plan_.speedups.push_back(std::move(speedup));
  }
  if (plan_.speedups.empty()) {
    throw unmatched->counts->refusal("a plain run to compare with",
                                     fmt::format("none at {}", concurrency_text(unmatched->figures)),
                                     "one of the same model, lengths and concurrency");
  }
}

/// The plain runs of one workload and load are one point.
std::vector<PlanPoint> points_of(const Runs& runs) {
  std::vector<PlanPoint> points;
  std::vector<bool> seen(runs.size(), false);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (seen[i] || runs[i].speculative()) continue;
    PlanPoint sum{0, 0};
    double count = 0;
    for (std::size_t j = i; j < runs.size(); ++j) {
      if (runs[j].speculative() || runs[j].workload != runs[i].workload || !same_load(runs[i], runs[j])) continue;
      seen[j] = true;
      sum.batch += runs[j].figures.batch;
      sum.context += runs[j].figures.context;
      ++count;
    }
    points.push_back({sum.batch / count, sum.context / count});
  }
  return points;
}

/// Rising, of values that differ by less than a workload's lengths the first.
std::vector<double> apart(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto close = [](double a, double b) { return same_length(a, b); };
  values.erase(std::unique(values.begin(), values.end(), close), values.end());
  return values;
}

std::optional<std::int64_t> BenchPlanner::speculative_requests() const {
  double requests = 0;
  for (const Run& run : runs_) {
    if (run.speculative()) requests += run.counts->bench->completed.value_or(0);
  }
  return requests < 2 ? std::nullopt : std::optional(static_cast<std::int64_t>(std::min(requests, 1e15)));
}

void BenchPlanner::ask() {
  DeploymentQuestion question;
  question.drafts = {{plan_.model, plan_.acceptance, cost_}};
  DeploymentDraft& draft = question.drafts[0];
  draft.clusters = question_.acceptance ? question_.clusters : speculative_requests();
  const std::vector<PlanPoint> points = points_of(runs_);
  question.contexts = question_.contexts;
  question.batches = question_.batches;
  if (question_.contexts.empty()) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (i == 0 || runs_[i].workload != runs_[i - 1].workload) question.contexts.push_back(runs_[i].figures.context);
    }
  }
  if (question_.batches.empty()) {
    for (const PlanPoint& point : points) question.batches.push_back(point.batch);
    question.batches = apart(std::move(question.batches));
    if (question_.contexts.empty()) question.points = points;
  }
  double largest_batch = question_.batches.empty() ? 1 : question_.batches.back();
  if (question_.batches.empty()) {
    for (const Run& run : runs_) largest_batch = std::max(largest_batch, run.figures.batch);
  }
  question.max_gamma = question_.max_gamma;
  question.tolerance = question_.tolerance;
  question.min_gain = question_.min_gain;
  question.deployed = question_.deployed;
  question.max_regret = question_.max_regret;
  question.schedule_up_to = question_.schedule_up_to.value_or(std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::min(static_cast<double>(largest_scheduled_batch), largest_batch))));
  plan_.plan = plan_deployment(question);
}

void BenchPlanner::backtest() {
  for (const ServingCounts& counts : question_.holdout) {
    if (counts.label("model_name") != plan_.model) {
      throw counts.refusal("model", std::string(counts.label("model_name")),
                           fmt::format("{}, the model of the runs it is predicted from", plan_.model));
    }
    plan_.backtest.push_back(prediction_of(make_run(counts, question_.gamma)));
  }
}

BenchPlan BenchPlanner::plan() {
  read();
  check_repeats();
  read_windows();
  join_batches();
  fit();
  predict_left_out();
  match();
  ask();
  backtest();
  return std::move(plan_);
}

}  // namespace

cost::FitOptions fit_of_runs() {
  cost::FitOptions options;
  options.split_tolerance = split_tolerance;
  return options;
}

BenchPlan plan_bench(const BenchQuestion& question) { return BenchPlanner(question).plan(); }

}  // namespace specdec::planning
