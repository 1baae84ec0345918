#include "analysis/planning/bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/anchored_cost.hpp"
#include "analysis/cost/lookup_cost.hpp"
#include "analysis/cost/mean_drafts.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/cost/overhead_cost.hpp"
#include "analysis/cost/range_cost.hpp"
#include "analysis/estimate/drawn_acceptance.hpp"
#include "analysis/planning/bench_acceptance.hpp"
#include "analysis/planning/bench_checks.hpp"
#include "analysis/planning/bench_predictions.hpp"
#include "analysis/planning/bench_runs.hpp"

namespace specdec::planning {
namespace {

using namespace bench;
using traces::ServingCounts;

class BenchPlanner {
 public:
  explicit BenchPlanner(const BenchQuestion& question) : question_(question) {}
  BenchPlan plan();

 private:
  void note(std::string code, std::string message) { plan_.notes.push_back({std::move(code), std::move(message)}); }
  void read();
  void leave_out_plain_runs();
  void take_out_prompts();
  void tell_prompts();
  void read_windows();
  void join_batches();
  void take_acceptance();
  estimate::TokenWorlds draw_acceptance();
  void take_worlds(const estimate::TokenWorlds& drawn);
  void fit();
  void anchor();
  std::shared_ptr<const cost::RoundCost> as_deployed(std::shared_ptr<const cost::RoundCost> rounds) const;
  void price_trees();
  void predict_left_out();
  std::string other_lengths(const Run& run) const;
  void ask();
  void backtest();

  const BenchQuestion& question_;
  cost::FitOptions options_;
  BenchPlan plan_;
  Runs runs_;
  /// Those of the runs, in their order, and those of the windows.
  std::vector<cost::ObservedRound> rounds_;
  /// The batch at which all rounds are taken to be, if they have only one.
  std::optional<double> batch_;
  std::shared_ptr<const cost::FittedCost> cost_;
  /// The acceptance of the runs, or of the question if no run states it.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance_;
  std::map<cost::DraftTree, MeasuredTree> trees_;
  /// By the batch how much longer plain steps may take out of step; empty if no longer.
  std::function<double(double)> plain_out_of_step_;
  /// Prompt tokens of others read in a round of so many tokens; empty where runs do not tell them apart.
  std::function<double(const cost::RoundPoint&, double tokens)> prompts_;
};

void BenchPlanner::read() {
  if (question_.runs.empty()) throw std::invalid_argument("plan_bench: there are no runs");
  if (question_.gamma) core::require_in("plan_bench", "gamma", *question_.gamma, 1, largest_scanned_gamma);
  plan_.model = model_of(question_);
  runs_ = runs_of(question_, plan_.model);
  const bool drafts = std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.speculative(); });
  for (const ServingCounts& run : question_.runs) {
    if (drafts || run.label("model_name") != plan_.model || !is_left_out(run, question_)) continue;
    throw run.refusal("the shape of drafts", "a tree (topk above 1)",
                      "a chain, as no other run drafted and the acceptance that is given is one of chains; what a tree "
                      "accepts of that traffic only a run of it tells");
  }
  if (runs_.empty()) {
    throw std::invalid_argument(fmt::format("plan_bench: no run is of model {}", plan_.model));
  }
  leave_out_plain_runs();
  for (const Run& run : runs_) {
    plan_.runs.push_back(run.figures);
    const auto& bench = *run.counts->bench;
    if (bench.completed && bench.num_prompts && *bench.completed < *bench.num_prompts) {
      note("requests_failed", fmt::format("{}: {:g} of {:g} requests were completed", run.counts->place(),
                                          *bench.completed, *bench.num_prompts));
    }
  }
}

/// If no plain run goes with a drafting one, drafts are compared among themselves, as if none were there.
void BenchPlanner::leave_out_plain_runs() {
  const Run* drafting = nullptr;
  for (const Run& run : runs_) {
    if (!run.speculative()) continue;
    drafting = &run;
    if (std::any_of(runs_.begin(), runs_.end(), [&](const Run& other) { return is_plain_of(other, run); })) return;
  }
  if (drafting == nullptr || !has_plain_runs(runs_)) return;
  const BenchFigures& figures = drafting->figures;
  const bool has_lengths = figures.input_tokens > 0 || figures.output_tokens > 0;
  const std::string wanted =
      fmt::format("one of the same model at {}{}", load_text(*drafting),
                  has_lengths ? fmt::format(" whose lengths are within {:.0f}% and chance of {}{}",
                                            100 * (same_lengths - 1), lengths_text(figures), other_lengths(*drafting))
                              : std::string());
  if (std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.speculative(); }) == 1) {
    throw drafting->counts->refusal("the plain run beside it", "missing", wanted);
  }
  note("plain_runs_left_out",
       fmt::format("no plain run goes with {} or another drafting run, so that none is compared with: it would be {}",
                   drafting->counts->place(), wanted));
  std::erase_if(runs_, [](const Run& run) { return !run.speculative(); });
}

/// Prices points beyond the runs by the shape of the other cost.
void BenchPlanner::anchor() {
  std::shared_ptr<const cost::RoundCost> shape = question_.beyond;
  const bool has_law = std::dynamic_pointer_cast<const cost::LookupCost>(shape) != nullptr;
  if (options_.mean_drafts && !has_law) shape = std::make_shared<cost::MeanDraftsCost>(shape, options_.mean_drafts);
  plan_.cost = std::make_shared<cost::AnchoredCost>(cost_, shape, question_.seed);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Run& run : runs_) {
    if (run.figures.tree) continue;
    const double ideal = shape->round({run.figures.gamma, run.figures.batch, run.figures.context}).total();
    least = std::min(least, run.round.seconds / ideal);
    most = std::max(most, run.round.seconds / ideal);
  }
  note("anchored_to_runs",
       fmt::format(
           "rounds of the runs took {:.3g} to {:.3g} times what the hardware's ideal says; beyond the runs, where "
           "rows are extrapolated, that goes on from the nearest of them",
           least, most));
}

/// Prompt tokens of other requests that are read per round of a batch: while a round yields its tokens, the other
/// requests end and begin at the same pace, each with a prompt.
double prompts_per_round(double batch, double tokens_per_step, double input_tokens, double output_tokens) {
  return std::max(0.0, batch - 1) * tokens_per_step * input_tokens / output_tokens;
}

/// Takes the reading of other requests' prompts out of the runs' rounds, at the rate that is given.
void BenchPlanner::take_out_prompts() {
  double largest_share = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const BenchFigures& run = runs_[i].figures;
    if (run.input_tokens <= 0 || run.output_tokens <= 0) continue;
    const double reading = prompts_per_round(run.batch, run.tokens_per_step, run.input_tokens, run.output_tokens) /
                           *question_.prompt_tokens_per_second;
    const double share = reading / rounds_[i].seconds;
    if (!(share < 1)) {
      throw std::domain_error(fmt::format(
          "{}: a round takes {:.4g} ms, but reading the prompts of other requests at {:g} tokens/s would take "
          "{:.4g} ms of it",
          rounds_[i].name, 1e3 * rounds_[i].seconds, *question_.prompt_tokens_per_second, 1e3 * reading));
    }
    largest_share = std::max(largest_share, share);
    rounds_[i].seconds -= reading;
  }
  if (largest_share == 0) return;
  note("prompts_taken_out",
       fmt::format(
           "reading the prompts of other requests at {:g} tokens/s, up to {:.0f}% of the time per token of a run, "
           "is taken out of the runs' times",
           *question_.prompt_tokens_per_second, 100 * largest_share));
}

/// The reading of other requests' prompts is priced apart from the rounds that it delays wherever lengths are known: by
/// the runs as far as they differ in their prompt tokens per output token, and else by what is usual.
void BenchPlanner::tell_prompts() {
  if (question_.prompt_tokens_per_second) return take_out_prompts();
  double outputs = 0;
  for (const Run& run : runs_) {
    if (run.figures.input_tokens <= 0 || run.figures.output_tokens <= 0) return;
    outputs += run.figures.output_tokens / static_cast<double>(runs_.size());
  }
  double most = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const BenchFigures& run = runs_[i].figures;
    rounds_[i].prompt_tokens = prompts_per_round(run.batch, run.tokens_per_step, run.input_tokens, run.output_tokens);
    most = std::max(most, rounds_[i].prompt_tokens);
  }
  if (most == 0 || question_.prompts_apart) return;
  prompts_ = [outputs](const cost::RoundPoint& point, double tokens) {
    return prompts_per_round(point.batch, tokens, std::max(0.0, point.context - outputs / 2), outputs);
  };
  options_.prompt_tokens = [acceptance = plan_.acceptance, prompts = prompts_](const cost::RoundPoint& point) {
    const bool drafts = point.gamma > 0 && acceptance != nullptr;
    return prompts(point, drafts ? acceptance->tokens_per_step(point.gamma).value : 1);
  };
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
  if (batch_ && hi > lo * (1 + 1e-9)) {
    note("one_batch", fmt::format("the runs are at batches {:.4g} to {:.4g}, which are taken as {:.4g}: other batches "
                                  "need runs at another concurrency",
                                  lo, hi, *batch_));
  }
}

void BenchPlanner::take_acceptance() {
  const std::vector<CountedRun> counted = counted_runs(runs_);
  acceptance_ = question_.acceptance;
  if (!counted.empty())
    acceptance_ = std::make_shared<estimate::PopulationCurve>(bench_acceptance(counted, question_.kind));
  if (!acceptance_ && has_chains(runs_)) acceptance_ = usual_acceptance(question_, longest_of(question_));
  plan_.acceptance = question_.acceptance ? question_.acceptance : acceptance_;
}

/// The worlds of acceptance in which costs are drawn where runs do not say their tokens per step, and by what the rounds
/// of these are longer in each: what they measured is seconds per token. Rounds of which the tokens are counted are as
/// long in every world.
estimate::TokenWorlds BenchPlanner::draw_acceptance() {
  const auto is_silent = [](const Run& run) { return run.is_chain() && !run.says_acceptance(); };
  if (std::none_of(runs_.begin(), runs_.end(), is_silent)) return {};
  estimate::TokenWorlds drawn = plan_.acceptance->draw(longest_of(question_), {worlds_without_lengths, question_.seed});
  if (drawn.worlds() < 2) return {};
  options_.log_factors.assign(drawn.worlds(), std::vector<double>(rounds_.size(), 0.0));
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto gamma = static_cast<std::size_t>(runs_[i].figures.gamma);
    if (!is_silent(runs_[i]) || gamma >= drawn.tokens.size()) continue;
    for (std::size_t world = 0; world < drawn.worlds(); ++world)
      options_.log_factors[world][i] = std::log(drawn.tokens[gamma][world] / runs_[i].figures.tokens_per_step);
  }
  return drawn;
}

/// The acceptance of the worlds that costs were drawn in, by which runs without lengths have some.
void BenchPlanner::take_worlds(const estimate::TokenWorlds& drawn) {
  if (drawn.worlds() == 0) return;
  plan_.acceptance = std::make_shared<estimate::DrawnAcceptance>(
      estimate::chosen_worlds(drawn, cost_->factors_of_replicates()), plan_.acceptance);
  if (!question_.acceptance) acceptance_ = plan_.acceptance;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (!run.is_chain() || run.says_acceptance()) continue;
    const double factor = cost_->usual_factors()[i];
    run.figures.tokens_per_step *= factor;
    run.figures.round_seconds *= factor;
    run.round.seconds *= factor;
    rounds_[i].seconds *= factor;
    plan_.runs[i] = run.figures;
  }
}

void BenchPlanner::fit() {
  options_.seed = question_.seed;
  options_.kind = question_.kind;
  options_.has_kernel_step = question_.has_kernel_step;
  std::vector<const ServingCounts*> counts;
  for (const Run& run : runs_) counts.push_back(run.counts);
  for (const ServingCounts& window : question_.windows) counts.push_back(&window);
  options_.mean_drafts = cost::mean_drafts_of(counts);
  options_.experts = cost::named_with_experts(plan_.model);
  if (!question_.kind_told) options_.priors = cost::usual_rounds(std::nullopt, options_.experts);
  const estimate::TokenWorlds drawn = draw_acceptance();
  cost_ = std::make_shared<cost::FittedCost>(rounds_, options_);
  take_worlds(drawn);
  plan_.cost = cost_;
  plan_.run_error = cost_->run_error();
  if (question_.beyond) anchor();
  if (auto out_of_step = bench::plain_out_of_step(runs_)) {
    plain_out_of_step_ = std::move(out_of_step->factor);
    plan_.notes.push_back(std::move(out_of_step->note));
  }
  plan_.cost = as_deployed(plan_.cost);
  price_trees();
  for (const Note& finding : cost_->findings()) {
    note(finding.code, finding.message);
    if (finding.code == cost::rounds_of_one_gamma) plan_.kind_would_tell = !question_.kind_told;
  }
}

/// Plain steps out of step, and with the overhead of what is deployed.
std::shared_ptr<const cost::RoundCost> BenchPlanner::as_deployed(std::shared_ptr<const cost::RoundCost> rounds) const {
  if (plain_out_of_step_) {
    // Servers whose requests differ in length are mostly out of step altogether.
    constexpr double at_end = 0.5;
    const auto longer = [factor = plain_out_of_step_](const cost::RoundPoint& point) {
      return cost::Range{1, point.gamma == 0 ? factor(point.batch) : 1};
    };
    rounds = std::make_shared<cost::RangeCost>(rounds, longer, at_end);
  }
  if (question_.overhead_seconds > 0 || question_.overhead_steps > 0)
    rounds = std::make_shared<cost::OverheadCost>(rounds, question_.overhead_seconds, question_.overhead_steps);
  return rounds;
}

void BenchPlanner::price_trees() {
  for (const Run& run : runs_) {
    if (!run.figures.tree || trees_.count(*run.figures.tree) > 0) continue;
    const cost::DraftTree& tree = *run.figures.tree;
    const auto acceptance = std::make_shared<estimate::PopulationCurve>(bench_acceptance(counted_runs(runs_, tree)));
    const estimate::TokensPerStep tokens = acceptance->tokens_per_step(tree.depth);
    std::function<double(const cost::RoundPoint&)> prompts;
    if (prompts_) {
      prompts = [per_round = prompts_, made = tokens.value](const cost::RoundPoint& point) {
        return per_round(point, point.gamma > 0 ? made : 1);
      };
    }
    trees_[tree] = {acceptance, tokens, as_deployed(cost_->of_tree(tree, prompts))};
  }
}

void BenchPlanner::predict_left_out() {
  plan_.leave_one_out = bench::predict_left_out(runs_, rounds_, options_);
  std::vector<double> relative;
  for (const BenchPrediction& row : plan_.leave_one_out)
    if (row.relative_error) relative.push_back(std::abs(*row.relative_error));
  if (!relative.empty()) plan_.leave_one_out_error = core::quantile(relative, 0.5);
}

/// The lengths of a plain run that has the run's concurrency.
std::string BenchPlanner::other_lengths(const Run& run) const {
  const auto plain = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const Run& other) { return !other.speculative() && same_load(other, run); });
  if (plain == runs_.end()) return "";
  return fmt::format("; those of {} are {}", plain->counts->place(), lengths_text(plain->figures));
}

/// Chains, if any ran, and each tree as a draft of its own.
void BenchPlanner::ask() {
  DeploymentQuestion& question = plan_.question;
  if (has_chains(runs_))
    question.drafts.push_back({trees_.empty() ? plan_.model : "chains", plan_.acceptance, plan_.cost});
  for (const auto& [tree, measured] : trees_) {
    question.drafts.push_back({name_of(tree), measured.acceptance, measured.cost});
    question.drafts.back().tree = tree;
  }
  for (const DeploymentDraft& draft : question.drafts) plan_.costs.push_back(draft.cost);
  std::vector<PlanPoint> points = points_of(runs_, has_plain_runs(runs_));
  leave_out_beyond(question_.schedule_up_to, points);
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
  question.min_gain = question_.min_gain;
  question.deployed = question_.deployed;
  question.max_regret = question_.max_regret;
  question.schedule_up_to = question_.schedule_up_to;
  question.schedule_prices = question_.schedule_prices;
  if (!question.schedule_up_to && (question_.schedules || question.batches.size() > 1)) {
    question.schedule_up_to =
        std::max<std::int64_t>(1, std::llround(std::min(static_cast<double>(largest_scheduled_batch), largest_batch)));
  }
  if (question.points.empty()) {
    for (const double context : question.contexts) {
      for (const double batch : question.batches) question.points.push_back({batch, context});
    }
  }
  plan_.plan = plan_deployment(question);
}

void BenchPlanner::backtest() {
  const bench::Prices prices{acceptance_, plan_.cost, trees_, batch_, plan_.run_error};
  for (const ServingCounts& counts : question_.holdout) {
    if (counts.label("model_name") != plan_.model) {
      throw counts.refusal("model", std::string(counts.label("model_name")),
                           fmt::format("{}, the model of the runs it is predicted from", plan_.model));
    }
    plan_.backtest.push_back(bench::predict(bench::make_run(counts, question_.gamma, acceptance_.get()), prices));
  }
  bench::allow_for_chance(plan_.backtest);
}

BenchPlan BenchPlanner::plan() {
  read();
  for (Note& note : bench::notes_of_runs(runs_, question_, plan_.model)) plan_.notes.push_back(std::move(note));
  read_windows();
  take_acceptance();
  tell_prompts();
  join_batches();
  fit();
  predict_left_out();
  plan_.speedups = bench::speedups_of(runs_, plan_.run_error, plan_.notes);
  ask();
  if (question_.acceptance && acceptance_) {
    auto contradicted = contradicted_acceptance(runs_, question_, *acceptance_);
    if (contradicted) plan_.notes.push_back(*std::move(contradicted));
  }
  backtest();
  return std::move(plan_);
}

}  // namespace

BenchPlan plan_bench(const BenchQuestion& question) { return BenchPlanner(question).plan(); }

}  // namespace specdec::planning
