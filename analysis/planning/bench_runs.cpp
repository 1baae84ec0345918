#include "analysis/planning/bench_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/drawn_acceptance.hpp"
#include "analysis/estimate/request_population.hpp"

namespace specdec::planning::bench {

using traces::ServingCounts;

namespace {

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
    const double mean = *run.drafted / *run.rounds;
    if (const auto gamma = cost::gamma_of_mean(mean)) return *gamma;
    throw run.refusal("drafted tokens per round", fmt::format("{:.3g}", mean),
                      mean < 1 ? "a whole number, or gamma stated (--at G), and --draft-kind ngram where drafts are looked up"
                               : "a whole number, or gamma stated (--at)");
  }
  throw run.refusal("drafted tokens per round", "unknown", "counted by the run, or gamma stated (--at)");
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

/// The factor by which the mean lengths of answers of one workload differ at most: those of few requests do by chance.
double same_answers(const BenchFigures& a, const BenchFigures& b) {
  if (a.requests <= 0 || b.requests <= 0) return same_lengths;
  const double spread = usual_spread_of_answers * std::sqrt(1 / a.requests + 1 / b.requests);
  return std::max(same_lengths, std::exp(core::normal_half_width_95 * spread));
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
        fmt::format("{} as in {}, or one of them chosen by --draft-model", other, first->counts->file.string()));
  }
  return first == nullptr ? std::nullopt : std::optional(std::string(first->counts->label("draft")));
}

}  // namespace

std::string load_text(const Run& run) {
  const traces::BenchRun& bench = *run.counts->bench;
  if (bench.max_concurrency) return fmt::format("concurrency {:g}", *bench.max_concurrency);
  return bench.batch ? fmt::format("batch {:g}", *bench.batch) : std::string("no limit of concurrency");
}

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

bool is_left_out(const ServingCounts& run, const BenchQuestion& question) {
  return run.shape == traces::DraftShape::tree && run.bench && question.acceptance;
}

std::int64_t longest_of(const BenchQuestion& question) {
  std::int64_t longest = question.max_gamma;
  for (const ServingCounts& run : question.runs) longest = std::max(longest, run.gamma.value_or(0));
  return std::min(longest, largest_scanned_gamma);
}

std::shared_ptr<const estimate::AcceptanceCurve> usual_acceptance(const BenchQuestion& question, std::int64_t longest) {
  const auto kind = question.kind_told ? std::optional(question.kind) : std::nullopt;
  return std::make_shared<estimate::DrawnAcceptance>(estimate::population_worlds(
      estimate::population_prior(kind), {}, {}, longest, {worlds_without_lengths, question.seed}));
}

std::string interval_text(const estimate::Interval& interval) {
  return interval.lo < interval.hi ? fmt::format(" [{:.3g} to {:.3g}]", interval.lo, interval.hi) : std::string();
}

bool same_length(double a, double b, double factor) { return a == b || (a <= factor * b && b <= factor * a); }

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

bool is_plain_of(const Run& plain, const Run& run) {
  return !plain.speculative() && same_workload(plain.figures, run.figures) && same_load(plain, run);
}

bool are_repeats(const Run& a, const Run& b) {
  return a.workload == b.workload && a.figures.gamma == b.figures.gamma && a.figures.tree == b.figures.tree &&
         same_load(a, b);
}

std::vector<CountedRun> counted_runs(const Runs& runs, const std::optional<cost::DraftTree>& tree, const Run* without) {
  std::vector<CountedRun> counted;
  for (const Run& run : runs) {
    if (&run != without && run.says_acceptance() && run.figures.tree == tree) counted.push_back(run.counted());
  }
  return counted;
}

namespace {

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

}  // namespace

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
    acceptance = std::make_shared<estimate::PopulationCurve>(bench_acceptance(counted, question.kind));
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
  sort_runs(runs);
  return runs;
}

bool has_plain_runs(const Runs& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return !run.speculative(); });
}

bool has_chains(const Runs& runs) {
  const auto no_tree = [](const Run& run) { return !run.figures.tree; };
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.is_chain(); }) ||
         std::all_of(runs.begin(), runs.end(), no_tree);
}

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

std::vector<double> apart(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto close = [](double a, double b) { return same_length(a, b); };
  values.erase(std::unique(values.begin(), values.end(), close), values.end());
  return values;
}

void leave_out_beyond(std::optional<std::int64_t> largest, std::vector<PlanPoint>& points) {
  if (!largest) return;
  const auto beyond = [&](const PlanPoint& point) { return whole_batch(point.batch) > static_cast<double>(*largest); };
  if (!std::all_of(points.begin(), points.end(), beyond)) std::erase_if(points, beyond);
}

}  // namespace specdec::planning::bench
