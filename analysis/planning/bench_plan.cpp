#include "analysis/planning/bench_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/anchored_cost.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/lookup_cost.hpp"
#include "analysis/cost/mean_drafts.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/cost/overhead_cost.hpp"
#include "analysis/cost/range_cost.hpp"
#include "analysis/estimate/drawn_acceptance.hpp"
#include "analysis/estimate/request_population.hpp"
#include "analysis/planning/bench_acceptance.hpp"
#include "analysis/planning/contradicted_alpha.hpp"

namespace specdec::planning {
namespace {

using traces::ServingCounts;

/// Lengths of two runs that differ by less than this factor are the same workload; output lengths vary between runs.
constexpr double same_lengths = 1.1;
/// Standard deviation of the lengths of answers over their mean, where they end by themselves. Assumed.
constexpr double usual_spread_of_answers = 0.6;
/// Repeated runs that differ by more than this factor contradict each other.
constexpr double runs_agree = 1.2;
/// Neighbouring times per token of one server never differ by this factor.
constexpr double far_apart = 20;
/// A batch within this factor of the runs' single batch is treated as that batch.
constexpr double one_batch = 1.25;
/// Worlds of acceptance from which those are chosen in which runs without lengths took what they took.
constexpr std::size_t worlds_without_lengths = 4000;
/// Tokens per step that differ by less than this factor beyond their intervals differ only by rounding.
constexpr double same_acceptance = 1.02;

struct Run {
  const ServingCounts* counts = nullptr;
  BenchFigures figures;
  cost::ObservedRound round;
  /// Index of its workload.
  std::size_t workload = 0;
  /// A tree's counts by depth, as those of a chain as long: what they say of this depth is the same. Null for chains.
  std::shared_ptr<const ServingCounts> by_depth = {};

  bool speculative() const { return figures.gamma > 0; }
  /// True if it states how much of its drafts was accepted.
  bool says_acceptance() const { return speculative() && !cost::drafts_uncounted(*counts); }
  bool is_chain() const { return speculative() && !figures.tree; }
  CountedRun counted() const { return {by_depth ? by_depth.get() : counts, figures.gamma}; }
};

using Runs = std::vector<Run>;

std::string load_text(const Run& run) {
  const traces::BenchRun& bench = *run.counts->bench;
  if (bench.max_concurrency) return fmt::format("concurrency {:g}", *bench.max_concurrency);
  return bench.batch ? fmt::format("batch {:g}", *bench.batch) : std::string("no limit of concurrency");
}

bool is_speculative(const ServingCounts& run) {
  if (run.rounds.value_or(0) > 0 || run.tokens_per_round || cost::drafts_uncounted(run)) return true;
  if (run.drafted.value_or(0) > 0) {
    throw run.refusal("the number of rounds (spec_decode_num_drafts)", "missing", "given, since drafts were made");
  }
  return false;
}

/// The run's drafted tokens per round.
std::int64_t gamma_of(const ServingCounts& run, std::optional<std::int64_t> stated) {
  if (!is_speculative(run)) return 0;
  if (run.gamma) return *run.gamma;
  if (stated) return *stated;
  if (run.rounds.value_or(0) > 0 && run.drafted) {
    // Drafts that end early make the mean slightly smaller than the requested length.
    const double mean = *run.drafted / *run.rounds;
    if (mean > 0 && std::ceil(mean) - mean <= 0.05 * mean) return static_cast<std::int64_t>(std::ceil(mean));
    throw run.refusal("drafted tokens per round", fmt::format("{:g}", mean), "a whole number, or gamma stated (--at)");
  }
  throw run.refusal("drafted tokens per round", "unknown", "counted by the run, or gamma stated (--at)");
}

/// Mean tokens per request, 0 where the run does not say them.
void take_lengths(const traces::BenchRun& bench, BenchFigures& figures) {
  const double completed = bench.completed.value_or(bench.num_prompts.value_or(0));
  figures.requests = completed;
  if (completed > 0) {
    figures.input_tokens = bench.total_input_tokens.value_or(0) / completed;
    figures.output_tokens = bench.total_output_tokens.value_or(0) / completed;
  }
  if (bench.input_tokens_per_request) figures.input_tokens = *bench.input_tokens_per_request;
  if (bench.output_tokens_per_request) figures.output_tokens = *bench.output_tokens_per_request;
}

std::optional<cost::DraftTree> tree_of(const ServingCounts& run) {
  if (run.shape != traces::DraftShape::tree) return std::nullopt;
  const auto stated = [&](const char* field, const std::optional<std::int64_t>& value) {
    if (!value) throw run.refusal(field, "missing", "given, since drafts were trees (topk above 1)");
    if (*value > cost::DraftTree::largest)
      throw run.refusal(field, fmt::format("{}", *value), fmt::format("at most {}", cost::DraftTree::largest));
    return *value;
  };
  const cost::DraftTree tree{stated("the depth of its tree (gamma, num_steps)", run.gamma), stated("topk", run.top_k),
                             stated("verified_tokens (num_draft_tokens)", run.verified_per_round)};
  const auto refuse = [&](const std::string& expected) {
    throw run.refusal("verified_tokens (num_draft_tokens)", fmt::format("{}", tree.verified), expected);
  };
  if (tree.verified <= tree.depth) refuse(fmt::format("above {}, the depth of its tree", tree.depth));
  if (tree.verified > tree.candidates() + 1)
    refuse(fmt::format("at most {}: {} passes with topk {} propose {} tokens", tree.candidates() + 1, tree.depth,
                       tree.top_k, tree.candidates()));
  return tree;
}

ServingCounts counted_by_depth(ServingCounts counts, const cost::DraftTree& tree) {
  counts.shape = traces::DraftShape::chain;
  counts.drafted.reset();
  if (counts.rounds) counts.drafted = *counts.rounds * static_cast<double>(tree.depth);
  return counts;
}

/// @param acceptance  of chains that do not state their own; null if there is none
Run make_run(const ServingCounts& counts, std::optional<std::int64_t> stated_gamma,
             const estimate::AcceptanceCurve* acceptance) {
  if (!counts.bench) throw counts.refusal("document", "no result of a benchmark", "a benchmark run");
  const traces::BenchRun& bench = *counts.bench;
  Run run;
  run.counts = &counts;
  run.figures.gamma = gamma_of(counts, stated_gamma);
  run.figures.tree = tree_of(counts);
  if (run.figures.tree)
    run.by_depth = std::make_shared<const ServingCounts>(counted_by_depth(counts, *run.figures.tree));
  std::optional<double> tokens_per_step;
  if (!run.figures.tree && cost::drafts_uncounted(counts) && acceptance != nullptr)
    tokens_per_step = acceptance->tokens_per_step(run.figures.gamma).value;
  const cost::BenchRounds rounds = cost::bench_rounds(
      *run.counted().counts, run.speculative() ? std::optional(static_cast<double>(run.figures.gamma)) : 0.0,
      tokens_per_step);
  run.round = rounds.round;
  run.round.tree = run.figures.tree;
  run.figures.server = run.round.server = std::string(counts.label("server"));
  run.figures.file = counts.file;
  run.figures.line = counts.line;
  run.figures.model = std::string(counts.label("model_name"));
  run.figures.max_concurrency = bench.max_concurrency;
  take_lengths(bench, run.figures);
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

/// The chosen one, or the only one that speculative runs name; empty if none is named.
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

/// An acceptance that is given is one of chains, and what a tree accepts does not follow from it.
bool is_left_out(const ServingCounts& run, const BenchQuestion& question) {
  return run.shape == traces::DraftShape::tree && run.bench && question.acceptance;
}

/// The largest gamma that is planned or ran.
std::int64_t longest_of(const BenchQuestion& question) {
  std::int64_t longest = question.max_gamma;
  for (const ServingCounts& run : question.runs) longest = std::max(longest, run.gamma.value_or(0));
  return std::min(longest, largest_scanned_gamma);
}

/// What is known of the acceptance of drafts before anything is measured, up to this gamma.
std::shared_ptr<const estimate::AcceptanceCurve> usual_acceptance(const BenchQuestion& question, std::int64_t longest) {
  const auto kind = question.kind_told ? std::optional(question.kind) : std::nullopt;
  return std::make_shared<estimate::DrawnAcceptance>(estimate::population_worlds(
      estimate::population_prior(kind), {}, {}, longest, {worlds_without_lengths, question.seed}));
}

/// Runs that state their acceptance before those that do not, which take the acceptance of the question, of the others,
/// or of their kind.
Runs runs_of(const BenchQuestion& question, const std::string& model) {
  Runs runs;
  std::vector<CountedRun> counted;
  for (const ServingCounts& counts : question.runs) {
    if (counts.label("model_name") != model || cost::drafts_uncounted(counts)) continue;
    if (is_left_out(counts, question)) continue;
    runs.push_back(make_run(counts, question.gamma, nullptr));
    if (runs.back().is_chain()) counted.push_back(runs.back().counted());
  }
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance = question.acceptance;
  if (!acceptance && !counted.empty())
    acceptance = std::make_shared<BenchAcceptance>(counted, question.kind);
  if (!acceptance) acceptance = usual_acceptance(question, longest_of(question));
  for (const ServingCounts& counts : question.runs) {
    if (counts.label("model_name") != model || !cost::drafts_uncounted(counts)) continue;
    if (is_left_out(counts, question)) continue;
    runs.push_back(make_run(counts, question.gamma, acceptance.get()));
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

/// " [1.2 to 1.3]"; empty for one value.
std::string interval_text(const estimate::Interval& interval) {
  return interval.lo < interval.hi ? fmt::format(" [{:.3g} to {:.3g}]", interval.lo, interval.hi) : std::string();
}

bool same_length(double a, double b, double factor = same_lengths) {
  return a == b || (a <= factor * b && b <= factor * a);
}

/// The factor by which the mean lengths of answers of one workload differ at most: those of few requests do by chance.
double same_answers(const BenchFigures& a, const BenchFigures& b) {
  if (a.requests <= 0 || b.requests <= 0) return same_lengths;
  const double spread = usual_spread_of_answers * std::sqrt(1 / a.requests + 1 / b.requests);
  return std::max(same_lengths, std::exp(core::normal_half_width_95 * spread));
}

std::string lengths_text(const BenchFigures& figures) {
  return fmt::format("{:.4g} input and {:.4g} output tokens a request", figures.input_tokens, figures.output_tokens);
}

bool same_workload(const BenchFigures& a, const BenchFigures& b) {
  return same_length(a.input_tokens, b.input_tokens) &&
         same_length(a.output_tokens, b.output_tokens, same_answers(a, b));
}

bool same_load(const ServingCounts& a, const ServingCounts& b) {
  const auto load = [](const traces::BenchRun& bench) {
    return std::pair(bench.max_concurrency ? bench.max_concurrency : bench.batch, bench.request_rate);
  };
  return load(*a.bench) == load(*b.bench);
}

bool same_load(const Run& a, const Run& b) { return same_load(*a.counts, *b.counts); }

/// Sorted by lengths, concurrency (batch if that has no limit) and gamma; lengths that are approximately equal to those
/// of one of its runs share a workload.
void sort_runs(Runs& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tie(a.figures.input_tokens, a.figures.output_tokens) <
           std::tie(b.figures.input_tokens, b.figures.output_tokens);
  });
  std::size_t workloads = 0;
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    const auto like =
        std::find_if(runs.begin(), run, [&](const Run& other) { return same_workload(other.figures, run->figures); });
    run->workload = like == run ? workloads++ : like->workload;
  }
  const auto key = [](const Run& run) {
    return std::tuple(run.workload, run.figures.max_concurrency.value_or(run.figures.batch), run.figures.gamma,
                      run.figures.tree);
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return key(a) < key(b); });
}

/// True for a plain run that a speculative one compares with.
bool is_plain_of(const Run& plain, const Run& run) {
  return !plain.speculative() && same_workload(plain.figures, run.figures) && same_load(plain, run);
}

/// True if they ran the same configuration, so that they differ only by chance.
bool are_repeats(const Run& a, const Run& b) {
  return a.workload == b.workload && a.figures.gamma == b.figures.gamma && a.figures.tree == b.figures.tree &&
         same_load(a, b);
}

/// Those of chains, or of one tree.
std::vector<CountedRun> counted_runs(const Runs& runs, const std::optional<cost::DraftTree>& tree = std::nullopt,
                                     const Run* without = nullptr) {
  std::vector<CountedRun> counted;
  for (const Run& run : runs) {
    if (&run != without && run.says_acceptance() && run.figures.tree == tree) counted.push_back(run.counted());
  }
  return counted;
}

/// The interval around the seconds of an output token: the errors of the round and of its tokens, whose interval and
/// readings add up, are independent.
estimate::Interval interval_of_token(double seconds, double round, const cost::Range& rounds,
                                     const estimate::TokensPerStep& tokens) {
  const double fewer = std::log(tokens.value / tokens.ci95.lo) + std::log(tokens.value / tokens.readings.lo);
  const double more = std::log(tokens.ci95.hi / tokens.value) + std::log(tokens.readings.hi / tokens.value);
  return {seconds * std::exp(-core::half_of_both(std::log(round / rounds.lo), more)),
          seconds * std::exp(core::half_of_both(std::log(rounds.hi / round), fewer))};
}

/// The tokens per step of a run, whose own counts have the same kind of error as those that predict them.
PredictedFigure tokens_of(const Run& run, const estimate::TokensPerStep& predicted) {
  const CountedRun counted[] = {run.counted()};
  const estimate::TokensPerStep own = BenchAcceptance(counted).tokens_per_step(run.figures.gamma);
  const double fewer =
      std::log(predicted.value / predicted.ci95.lo) + std::log(predicted.value / predicted.readings.lo);
  const double more = std::log(predicted.ci95.hi / predicted.value) + std::log(predicted.readings.hi / predicted.value);
  return {predicted.value,
          run.figures.tokens_per_step,
          {predicted.value * std::exp(-core::half_of_both(fewer, std::log(own.ci95.hi / own.value))),
           predicted.value * std::exp(core::half_of_both(more, std::log(own.value / own.ci95.lo)))}};
}

/// A plain run by how much its steps may take longer where its requests do not end and begin together.
struct PlainInStep {
  const Run* plain = nullptr;
  double factor = 1;
  /// The drafting run that says so; null if none does.
  const Run* beside = nullptr;
};

/// What is known of a tree that ran.
struct MeasuredTree {
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  estimate::TokensPerStep tokens;
  std::shared_ptr<const cost::RoundCost> cost;
};

class BenchPlanner {
 public:
  explicit BenchPlanner(const BenchQuestion& question) : question_(question) {}
  BenchPlan plan();

 private:
  void note(std::string code, std::string message) { plan_.notes.push_back({std::move(code), std::move(message)}); }
  void read();
  void leave_out_plain_runs();
  bool has_plain_runs() const;
  bool has_chains() const;
  void check_acceptance();
  void check_constant_alpha();
  void take_out_prompts();
  void tell_prompts();
  void note_prompts();
  void check_repeats();
  void check_units();
  void note_left_out_trees();
  void read_windows();
  void join_batches();
  void take_acceptance();
  estimate::TokenWorlds draw_acceptance();
  void take_worlds(const estimate::TokenWorlds& drawn);
  void fit();
  void anchor();
  std::vector<PlainInStep> plain_in_step() const;
  void find_plain_in_step();
  std::shared_ptr<const cost::RoundCost> as_deployed(std::shared_ptr<const cost::RoundCost> rounds) const;
  void price_trees();
  void predict_left_out();
  BenchPrediction prediction_of(const Run& run) const;
  struct RepeatedError {
    double variance = 0, degrees = 0;
  };
  std::optional<RepeatedError> repeated_error() const;
  void match();
  std::string other_lengths(const Run& run) const;
  void ask();
  void compare_acceptance();
  std::string contradicted_speedup() const;
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
  sort_runs(runs_);
  leave_out_plain_runs();
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
}

/// If no plain run goes with a drafting one, drafts are compared among themselves, as if none were there.
void BenchPlanner::leave_out_plain_runs() {
  const Run* drafting = nullptr;
  for (const Run& run : runs_) {
    if (!run.speculative()) continue;
    drafting = &run;
    if (std::any_of(runs_.begin(), runs_.end(), [&](const Run& other) { return is_plain_of(other, run); })) return;
  }
  if (drafting == nullptr || !has_plain_runs()) return;
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

bool BenchPlanner::has_plain_runs() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return !run.speculative(); });
}

bool BenchPlanner::has_chains() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.is_chain(); });
}

/// Prices points beyond the runs by the shape of the other cost.
void BenchPlanner::anchor() {
  std::shared_ptr<const cost::RoundCost> shape = question_.beyond;
  const bool has_law = std::dynamic_pointer_cast<const cost::LookupCost>(shape) != nullptr;
  if (options_.mean_drafts && !has_law) shape = std::make_shared<cost::MeanDraftsCost>(shape, options_.mean_drafts);
  const auto anchored = std::make_shared<cost::AnchoredCost>(cost_, shape, question_.seed);
  plan_.cost = anchored;
  plan_.log_covariance = [anchored](const auto& a, const auto& b) { return anchored->log_covariance(a, b); };
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

/// Requests of one length that begin together end together. Then all new prompts are read between plain tokens of
/// nobody, while drafts, accepted by chance, put requests out of step, whose tokens wait for the prompts of others.
/// With s the share of the clients that decode (batch / concurrency) and r the ratio of throughputs, a plain request
/// out of step would wait for its first token as long as a drafting one does, a share (1 - s) / r of its life:
///
///   factor = (1 - (1 - s) / r) / (share of clients that decode in the plain run)
///
/// Only where more of the clients decode with drafts, by more than chance: out of step it is fewer.
std::vector<PlainInStep> BenchPlanner::plain_in_step() const {
  constexpr double more_decode = 1.01;
  const auto share = [](const Run& run) { return run.figures.batch / *run.figures.max_concurrency; };
  const auto throughput = [](const Run& run) { return run.figures.batch / run.figures.seconds_per_output_token; };
  const auto by_littles_law = [](const Run& run) {
    return run.figures.max_concurrency.value_or(1) > 1 && !run.counts->bench->batch;
  };
  std::vector<PlainInStep> found;
  for (const Run& plain : runs_) {
    if (plain.speculative() || !by_littles_law(plain)) continue;
    PlainInStep its{&plain};
    for (const Run& run : runs_) {
      if (!run.speculative() || !is_plain_of(plain, run) || share(run) < more_decode * share(plain)) continue;
      const double waiting = std::max(0.0, 1 - share(run)) * throughput(plain) / throughput(run);
      const double factor = (1 - waiting) / share(plain);
      if (factor > its.factor) its = {&plain, factor, &run};
    }
    found.push_back(its);
  }
  return found;
}

/// Intervals hold that plain steps out of step may take longer.
void BenchPlanner::find_plain_in_step() {
  constexpr double least_factor = 1.03;
  const std::vector<PlainInStep> runs = plain_in_step();
  if (runs.empty()) return;
  const PlainInStep worst =
      *std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.factor < b.factor; });
  if (worst.factor < least_factor) return;
  // The cost outlives the runs. Of repeats the largest factor counts.
  std::map<double, double> log_factors;
  for (const PlainInStep& run : runs) {
    double& its = log_factors[std::log(run.plain->figures.batch)];
    its = std::max(its, std::log(run.factor));
  }
  plain_out_of_step_ = [log_factors](double batch) {
    const auto above = log_factors.lower_bound(std::log(batch));
    if (above == log_factors.begin()) return std::exp(above->second);
    const auto below = std::prev(above);
    if (above == log_factors.end()) return std::exp(below->second);
    const double way = (std::log(batch) - below->first) / (above->first - below->first);
    return std::exp(std::lerp(below->second, above->second, way));
  };
  const BenchFigures &plain = worst.plain->figures, &beside = worst.beside->figures;
  note("plain_in_step",
       fmt::format("{}: {:.3g} of {:g} requests were decoding on average, and {:.3g} in {}: as where requests of one "
                   "length end and begin together without drafts, so that no token waits for the prompts of others, as "
                   "it does with drafts. Out of step plain tokens may take up to {:.3g} times as long, which the "
                   "intervals hold; runs whose requests differ more in length tell",
                   worst.plain->counts->place(), plain.batch, *plain.max_concurrency, beside.batch,
                   worst.beside->counts->place(), worst.factor));
}

/// Warns of acceptance that the runs do not count, or not precisely.
void BenchPlanner::check_acceptance() {
  const auto list = [&](auto concerned) {
    std::vector<std::string> places;
    for (const Run& run : runs_)
      if (concerned(run)) places.push_back(run.counts->place());
    return fmt::format("{}", fmt::join(places, ", "));
  };
  const std::string silent = list([](const Run& run) { return run.speculative() && !run.says_acceptance(); });
  if (!silent.empty()) {
    note("acceptance_of_other_source",
         fmt::format("{} does not say how many tokens a step made: beside a plain run its speed is known all the same, and "
                     "other gammas as far as {} and all rounds together tell",
                     silent,
                     question_.acceptance           ? "the acceptance given beside the runs"
                     : counted_runs(runs_).empty() ? "what is usual of such drafts"
                                                    : "the other runs"));
  }
  const std::string unweighted =
      list([](const Run& run) { return run.counts->tokens_per_round && !run.counts->rounds; });
  if (unweighted.empty() || question_.acceptance) return;
  note("acceptance_error_unknown",
       fmt::format("{}: of how many rounds the tokens per step are the mean is not said, and where one run alone has a "
                   "gamma the intervals hold no sampling error of its acceptance; a column rounds says it",
                   unweighted));
}

void BenchPlanner::check_constant_alpha() {
  const std::vector<CountedRun> counted = counted_runs(runs_);
  if (counted.empty()) return;
  const auto found = contradicted_alpha(counted);
  if (!found) return;
  const char* at = found->by_position ? "draft" : "gamma";
  note("constant_alpha_falsified",
       fmt::format(
           "a constant alpha is falsified by the runs: it would be {:.3g} at {} {} and {:.3g} at {} {}, which is "
           "no error of sampling (p {:.1g}); {}formulas in one alpha do not hold for this draft",
           found->first_rate, at, found->first_at, found->second_rate, at, found->second_at, found->p_value,
           question_.acceptance ? "" : "the plan takes what was counted, and "));
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

void BenchPlanner::check_repeats() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    for (std::size_t j = i + 1; j < runs_.size(); ++j) {
      const Run& a = runs_[i];
      const Run& b = runs_[j];
      if (!are_repeats(a, b)) continue;
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
                       a.counts->place(), b.counts->place(), load_text(a), a.figures.gamma,
                       1e3 * a.figures.seconds_per_output_token, 1e3 * b.figures.seconds_per_output_token));
    }
  }
}

/// Milliseconds given as seconds, or vice versa, leave a gap between times per token.
void BenchPlanner::check_units() {
  std::vector<const Run*> rising;
  for (const Run& run : runs_) rising.push_back(&run);
  const auto milliseconds = [](const Run* run) { return 1e3 * run->figures.seconds_per_output_token; };
  std::stable_sort(rising.begin(), rising.end(),
                   [&](const Run* a, const Run* b) { return milliseconds(a) < milliseconds(b); });
  for (std::size_t i = 1; i < rising.size(); ++i) {
    const Run* const below = rising[i - 1];
    const Run* const above = rising[i];
    if (milliseconds(above) < far_apart * milliseconds(below)) continue;
    note("times_far_apart",
         fmt::format("{} of {} runs took up to {:.3g} ms per token ({}), and the others {:.3g} or more ({}): "
                     "some may be in another unit",
                     i, rising.size(), milliseconds(below), below->counts->place(), milliseconds(above),
                     above->counts->place()));
    return;
  }
}

/// Notes the trees that are left out, with their time beside the plain run of the same lengths and load.
void BenchPlanner::note_left_out_trees() {
  for (const ServingCounts& tree : question_.runs) {
    if (tree.label("model_name") != plan_.model || !is_left_out(tree, question_)) continue;
    BenchFigures lengths;
    take_lengths(*tree.bench, lengths);
    const auto plain = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
      return !run.speculative() && same_load(*run.counts, tree) && same_workload(run.figures, lengths);
    });
    std::string measured;
    if (plain != runs_.end() && tree.bench->mean_tpot_ms.value_or(0) > 0) {
      const double milliseconds = *tree.bench->mean_tpot_ms;
      measured = fmt::format("; it took {:.4g} ms per token, {:.2f}x the speed of {}", milliseconds,
                             1e3 * plain->figures.seconds_per_output_token / milliseconds, plain->counts->place());
    }
    note("tree_left_out",
         fmt::format("{} drafted trees (topk above 1), and the acceptance that is given is one of chains: what a tree "
                     "accepts of that traffic only a run of it tells{}",
                     tree.place(), measured));
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
  if (batch_ && hi > lo * (1 + 1e-9)) {
    note("one_batch", fmt::format("the runs are at batches {:.4g} to {:.4g}, which are taken as {:.4g}: other batches "
                                  "need runs at another concurrency",
                                  lo, hi, *batch_));
  }
}

void BenchPlanner::take_acceptance() {
  const std::vector<CountedRun> counted = counted_runs(runs_);
  acceptance_ = question_.acceptance;
  if (!counted.empty()) acceptance_ = std::make_shared<BenchAcceptance>(counted, question_.kind);
  if (!acceptance_ && has_chains()) acceptance_ = usual_acceptance(question_, longest_of(question_));
  plan_.acceptance = question_.acceptance ? question_.acceptance : acceptance_;
}

/// The worlds of acceptance in which costs are drawn, and by what the runs' rounds are longer in each. An acceptance that
/// is given is of other traffic than rounds of which the tokens are known.
estimate::TokenWorlds BenchPlanner::draw_acceptance() {
  const auto is_silent = [](const Run& run) { return run.is_chain() && !run.says_acceptance(); };
  const bool silent = std::any_of(runs_.begin(), runs_.end(), is_silent);
  if (!has_chains() || (question_.acceptance && !silent)) return {};
  estimate::TokenWorlds drawn = plan_.acceptance->draw(
      longest_of(question_), {silent ? worlds_without_lengths : options_.replicates, question_.seed});
  const bool is_one_law = drawn.alternative.back() == 0;
  if (drawn.worlds() < 2 || (!is_one_law && !silent)) return {};
  options_.weigh_factors = silent;
  options_.log_factors.assign(drawn.worlds(), std::vector<double>(rounds_.size(), 0.0));
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto gamma = static_cast<std::size_t>(runs_[i].figures.gamma);
    const bool is_of_it = is_silent(runs_[i]) || !question_.acceptance;
    if (!runs_[i].is_chain() || !is_of_it || gamma >= drawn.tokens.size()) continue;
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
  if (!options_.weigh_factors) return;
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
  plan_.log_covariance = [fit = cost_](const auto& a, const auto& b) { return fit->log_covariance(a, b); };
  if (question_.beyond) anchor();
  find_plain_in_step();
  plan_.cost = as_deployed(plan_.cost);
  price_trees();
  for (const Note& finding : cost_->findings()) note(finding.code, finding.message);
  if (options_.prompt_tokens) note_prompts();
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
    const auto acceptance = std::make_shared<BenchAcceptance>(counted_runs(runs_, tree));
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

void BenchPlanner::note_prompts() {
  const auto share = [](const Run& run) { return run.figures.input_tokens / run.figures.output_tokens; };
  const auto [least, most] =
      std::minmax_element(runs_.begin(), runs_.end(), [&](const Run& a, const Run& b) { return share(a) < share(b); });
  if (same_length(share(*least), share(*most))) return;
  const cost::FittedTerm& prompts = cost_->terms()[cost::prompt_token_term];
  constexpr double per_1000_in_ms = 1e6;
  const std::string found =
      prompts.told
          ? fmt::format("takes {:.3g} ms per 1000 tokens (95%: {:.3g} to {:.3g})", per_1000_in_ms * prompts.value,
                        per_1000_in_ms * prompts.ci95.lo, per_1000_in_ms * prompts.ci95.hi)
          : fmt::format("may take nothing, and at most {:.3g} ms per 1000 tokens, which is all that they tell",
                        per_1000_in_ms * prompts.ci95.hi);
  note("prompts_priced",
       fmt::format("runs had {:.3g} to {:.3g} prompt tokens for each output token: reading the prompts "
                   "of other requests {}; it is priced apart from the rounds that it delays",
                   share(*least), share(*most), found));
}

void BenchPlanner::predict_left_out() {
  const std::vector<cost::LeftOut> left_out = cost::leave_one_out(rounds_, options_, runs_.size());
  std::vector<double> relative;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    BenchPrediction row;
    row.file = run.figures.file;
    row.line = run.figures.line;
    row.measured = run.figures.seconds_per_output_token;
    const std::vector<CountedRun> others = counted_runs(runs_, run.figures.tree, &run);
    if (!left_out[i].predicted_seconds) {
      row.reason = run.speculative() ? "no other run drafted" : "all other runs drafted";
    } else if (run.says_acceptance() && others.empty()) {
      row.reason =
          run.figures.tree ? "no other run of its tree says what is accepted" : "no other run says what is accepted";
    } else {
      const double per_step = run.says_acceptance() ? BenchAcceptance(others).tokens_per_step(run.figures.gamma).value
                                                    : run.figures.tokens_per_step;
      row.predicted = *left_out[i].predicted_seconds / per_step;
      row.relative_error = *row.predicted / row.measured - 1;
      relative.push_back(std::abs(*row.relative_error));
    }
    plan_.leave_one_out.push_back(std::move(row));
  }
  if (rounds_.size() <= cost_->rank()) {
    note(
        "cost_error_unknown",
        fmt::format("there are not more runs than they tell terms of the cost, so that they hardly show its error: the "
                    "intervals rest on {:.0f}% a run, and on how servers differ",
                    100 * options_.usual_error));
  }
  if (relative.empty()) return;
  plan_.leave_one_out_error = core::quantile(relative, 0.5);
}

BenchPrediction BenchPlanner::prediction_of(const Run& run) const {
  BenchPrediction row;
  row.file = run.figures.file;
  row.line = run.figures.line;
  row.measured = run.figures.seconds_per_output_token;
  const auto tree = run.figures.tree ? trees_.find(*run.figures.tree) : trees_.end();
  const bool is_tree = tree != trees_.end();
  if (run.speculative() && !is_tree && (run.figures.tree || acceptance_ == nullptr)) {
    row.reason = "no run of its tree, or of a chain, is among those that predict it";
    return row;
  }
  const estimate::TokensPerStep tokens = is_tree             ? tree->second.tokens
                                         : run.speculative() ? acceptance_->tokens_per_step(run.figures.gamma)
                                                             : estimate::TokensPerStep{.full_accepts = 1};
  const cost::RoundCost& cost = is_tree ? *tree->second.cost : *plan_.cost;
  const double batch = run.figures.batch;
  const bool joined = batch_ && batch <= one_batch * *batch_ && *batch_ <= one_batch * batch;
  const cost::RoundPoint point = {run.figures.gamma, joined ? *batch_ : batch, run.figures.context,
                                  tokens.full_accepts};
  const double round = cost.round(point).total();
  row.predicted = round / tokens.value;
  row.relative_error = *row.predicted / row.measured - 1;
  const cost::Range rounds = cost::central_range(cost, point);
  row.ci95 = interval_of_token(*row.predicted, round, rounds, tokens);
  row.round = PredictedFigure{round, run.round.seconds, {rounds.lo, rounds.hi}};
  if (run.says_acceptance()) row.tokens = tokens_of(run, tokens);
  return row;
}

/// The lengths of a plain run that has the run's concurrency.
std::string BenchPlanner::other_lengths(const Run& run) const {
  const auto plain = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const Run& other) { return !other.speculative() && same_load(other, run); });
  if (plain == runs_.end()) return "";
  return fmt::format("; those of {} are {}", plain->counts->place(), lengths_text(plain->figures));
}

/// Pooled variance of the logarithms of repeated runs of one start of a server.
/// Empty if none is repeated, or none differs within the printed digits.
std::optional<BenchPlanner::RepeatedError> BenchPlanner::repeated_error() const {
  double squares = 0, degrees = 0;
  std::vector<bool> seen(runs_.size(), false);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (seen[i]) continue;
    std::vector<double> logs;
    for (std::size_t j = i; j < runs_.size(); ++j) {
      if (!are_repeats(runs_[i], runs_[j]) || runs_[i].figures.server != runs_[j].figures.server) continue;
      seen[j] = true;
      logs.push_back(std::log(runs_[j].figures.seconds_per_output_token));
    }
    const auto n = static_cast<double>(logs.size());
    const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
    for (const double log : logs) squares += (log - mean) * (log - mean);
    degrees += n - 1;
  }
  if (squares == 0) return std::nullopt;
  return RepeatedError{squares / degrees, degrees};
}

/// Measured speedups have the interval of the measurement, and none if nothing was measured twice.
void BenchPlanner::match() {
  if (!has_plain_runs()) return;
  const std::optional<RepeatedError> repeats = repeated_error();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (!run.speculative()) continue;
    std::optional<std::size_t> baseline;
    for (std::size_t j = 0; j < runs_.size(); ++j) {
      if (!is_plain_of(runs_[j], run)) continue;
      // A plain run of the same start is preferred.
      const auto distance = [&](std::size_t k) {
        return std::pair(runs_[k].figures.server != run.figures.server,
                         std::abs(std::log(runs_[k].figures.batch / run.figures.batch)));
      };
      if (!baseline || distance(j) < distance(*baseline)) baseline = j;
    }
    if (!baseline) {
      note("unmatched_run",
           fmt::format("{} has no plain run of the same lengths at {}: it says what rounds cost and no speedup",
                       run.counts->place(), load_text(run)));
      continue;
    }
    BenchSpeedup speedup;
    speedup.baseline = *baseline;
    speedup.speculative = i;
    speedup.speedup.value = runs_[*baseline].figures.seconds_per_output_token / run.figures.seconds_per_output_token;
    speedup.speedup.method = "ratio of two runs";
    if (repeats) {
      const double half_width =
          boost::math::quantile(boost::math::students_t(repeats->degrees), 0.975) * std::sqrt(2 * repeats->variance);
      speedup.speedup.ci95 = estimate::Interval{speedup.speedup.value * std::exp(-half_width),
                                                speedup.speedup.value * std::exp(half_width)};
      speedup.speedup.method += ", in the interval of repeated runs";
    }
    plan_.speedups.push_back(std::move(speedup));
  }
}

/// The plain runs of one workload and load are one point; if none is plain, all runs are used.
std::vector<PlanPoint> points_of(const Runs& runs, bool has_plain) {
  std::vector<PlanPoint> points;
  std::vector<bool> seen(runs.size(), false);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (seen[i] || (has_plain && runs[i].speculative())) continue;
    PlanPoint sum{0, 0};
    double count = 0;
    for (std::size_t j = i; j < runs.size(); ++j) {
      if ((has_plain && runs[j].speculative()) || runs[j].workload != runs[i].workload || !same_load(runs[i], runs[j]))
        continue;
      seen[j] = true;
      sum.batch += runs[j].figures.batch;
      sum.context += runs[j].figures.context;
      ++count;
    }
    points.push_back({sum.batch / count, sum.context / count});
  }
  return points;
}

/// In increasing order; of values that differ by less than a workload's lengths only the first.
std::vector<double> apart(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto close = [](double a, double b) { return same_length(a, b); };
  values.erase(std::unique(values.begin(), values.end(), close), values.end());
  return values;
}

/// Index of the point of a plain run: repeated ones are one point.
std::size_t nearest(const std::vector<PlanPoint>& points, const BenchFigures& plain) {
  const auto distance = [&](const PlanPoint& point) {
    return std::abs(std::log(point.batch / plain.batch)) +
           std::abs(std::log((point.context + 1) / (plain.context + 1)));
  };
  const auto least = std::min_element(
      points.begin(), points.end(), [&](const PlanPoint& a, const PlanPoint& b) { return distance(a) < distance(b); });
  return static_cast<std::size_t>(least - points.begin());
}

/// Leaves out points at larger batches than the server is to decode, unless all are.
void leave_out_beyond(std::optional<std::int64_t> largest, std::vector<PlanPoint>& points) {
  if (!largest) return;
  const auto beyond = [&](const PlanPoint& point) { return whole_batch(point.batch) > static_cast<double>(*largest); };
  if (!std::all_of(points.begin(), points.end(), beyond)) std::erase_if(points, beyond);
}

/// Chains, if any ran, and each tree as a draft of its own.
void BenchPlanner::ask() {
  DeploymentQuestion& question = plan_.question;
  if (has_chains())
    question.drafts.push_back({trees_.empty() ? plan_.model : "chains", plan_.acceptance, plan_.cost});
  for (const auto& [tree, measured] : trees_) {
    question.drafts.push_back({name_of(tree), measured.acceptance, measured.cost});
    question.drafts.back().tree = tree;
  }
  for (const DeploymentDraft& draft : question.drafts) plan_.costs.push_back(draft.cost);
  std::vector<PlanPoint> points = points_of(runs_, has_plain_runs());
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

/// Reports how a given acceptance differs from that of the runs: at the gamma at which they are furthest apart.
void BenchPlanner::compare_acceptance() {
  if (!question_.acceptance) return;
  const auto around = [](const estimate::TokensPerStep& tokens) {
    return estimate::Interval{tokens.ci95.lo * tokens.readings.lo / tokens.value,
                              tokens.ci95.hi * tokens.readings.hi / tokens.value};
  };
  double furthest = same_acceptance;
  std::string found;
  for (const Run& run : runs_) {
    if (!run.says_acceptance() || run.figures.tree) continue;
    const std::int64_t gamma = run.figures.gamma;
    estimate::TokensPerStep given;
    try {
      given = question_.acceptance->tokens_per_step(gamma);
    } catch (const std::domain_error&) {
      continue;  // the acceptance ends before this gamma
    }
    const estimate::TokensPerStep counted = acceptance_->tokens_per_step(gamma);
    const estimate::Interval a = around(given), b = around(counted);
    const double apart = std::max(a.lo / b.hi, b.lo / a.hi);
    if (apart <= furthest) continue;
    furthest = apart;
    found = fmt::format(
        "at gamma {} the acceptance that is given makes {:.3g} tokens a step{}, and the runs counted "
        "{:.3g}{}",
        gamma, given.value, interval_text(a), counted.value, interval_text(b));
  }
  if (found.empty()) return;
  note("acceptance_contradicts_runs",
       fmt::format("{}{}; the plan takes what is given, which is right where its traffic is not that of the runs",
                   found, contradicted_speedup()));
}

/// "; at batch 8 ..." for the measured speedup that is furthest from the plan's, beyond both intervals; empty if there
/// is none, or if the plan is for other points or other rounds than those of the runs.
std::string BenchPlanner::contradicted_speedup() const {
  if (!question_.batches.empty() || !question_.contexts.empty()) return "";
  if (question_.overhead_seconds > 0 || question_.overhead_steps > 0) return "";
  const std::vector<PlanPoint> points = points_of(runs_, has_plain_runs());
  double furthest = 1;
  std::string found;
  for (const BenchSpeedup& row : plan_.speedups) {
    const Run& run = runs_[row.speculative];
    if (run.figures.tree) continue;
    const PlanPoint& at = points[nearest(points, runs_[row.baseline].figures)];
    const std::vector<PointPlan>& planned = plan_.plan.drafts[0].points;
    const auto its = std::find_if(planned.begin(), planned.end(), [&](const PointPlan& point) {
      return point.batch == at.batch && point.context == at.context;
    });
    if (its == planned.end()) continue;
    const PointPlan& point = *its;
    const auto gamma = static_cast<std::size_t>(run.figures.gamma);
    if (gamma >= point.rows.size()) continue;
    const estimate::Interval& expected = point.rows[gamma].speedup_ci95;
    const estimate::Interval measured = row.speedup.ci95.value_or(estimate::exactly(row.speedup.value));
    const double apart = std::max(expected.lo / measured.hi, measured.lo / expected.hi);
    if (apart <= furthest) continue;
    furthest = apart;
    found = fmt::format("; at batch {:.3g} it plans {:.2f}x{} for gamma {}, and {} measured {:.2f}x{}", point.batch,
                        point.rows[gamma].speedup, interval_text(expected), gamma, run.counts->place(),
                        row.speedup.value, interval_text(measured));
  }
  return found;
}

void BenchPlanner::backtest() {
  for (const ServingCounts& counts : question_.holdout) {
    if (counts.label("model_name") != plan_.model) {
      throw counts.refusal("model", std::string(counts.label("model_name")),
                           fmt::format("{}, the model of the runs it is predicted from", plan_.model));
    }
    plan_.backtest.push_back(prediction_of(make_run(counts, question_.gamma, acceptance_.get())));
  }
  double compared = 0;
  for (const BenchPrediction& held : plan_.backtest)
    compared += (held.ci95 ? 1 : 0) + (held.round ? 1 : 0) + (held.tokens ? 1 : 0);
  if (compared == 0) return;
  const double widths = boost::math::quantile(boost::math::normal(), 1 - 0.025 / compared) / core::normal_half_width_95;
  for (BenchPrediction& held : plan_.backtest) held.widths = widths;
}

BenchPlan BenchPlanner::plan() {
  read();
  check_acceptance();
  check_constant_alpha();
  check_repeats();
  check_units();
  note_left_out_trees();
  read_windows();
  take_acceptance();
  tell_prompts();
  join_batches();
  fit();
  predict_left_out();
  match();
  ask();
  compare_acceptance();
  backtest();
  return std::move(plan_);
}

}  // namespace

BenchPlan plan_bench(const BenchQuestion& question) { return BenchPlanner(question).plan(); }

}  // namespace specdec::planning
