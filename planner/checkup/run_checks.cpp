#include "planner/checkup/run_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/cost/observed_rounds.hpp"
#include "planner/number_text.hpp"
#include "traces/file_error.hpp"

namespace specdec::planner {
namespace {

using traces::ServingCounts;

/// A run's load and time.
struct TimedRun {
  const ServingCounts* run = nullptr;
  bool drafts = false;
  std::string model;
  std::optional<double> concurrency, input_tokens, output_tokens;
  /// Seconds of a round, or of a token where nothing is drafted. Empty if the run does not say it.
  std::optional<double> seconds;
  /// Drafted tokens and tokens of a round; set if seconds are.
  double gamma = 0, tokens = 1;
};

std::optional<double> per_request(const std::optional<double>& mean, const std::optional<double>& total,
                                  const std::optional<double>& completed) {
  if (mean) return mean;
  if (!total || !completed || !(*completed > 0)) return std::nullopt;
  return *total / *completed;
}

TimedRun timed(const ServingCounts& run) {
  const traces::BenchRun& bench = *run.bench;
  TimedRun timed;
  timed.run = &run;
  timed.drafts = run.rounds.value_or(0) > 0 || run.tokens_per_round || cost::drafts_uncounted(run);
  timed.model = std::string(run.label("model_name"));
  timed.concurrency = bench.max_concurrency;
  timed.input_tokens = per_request(bench.input_tokens_per_request, bench.total_input_tokens, bench.completed);
  timed.output_tokens = per_request(bench.output_tokens_per_request, bench.total_output_tokens, bench.completed);
  const bool tells_gamma = !timed.drafts || run.gamma || (run.drafted && run.rounds);
  const bool tells_length = !cost::drafts_uncounted(run);
  if (bench.mean_tpot_ms && bench.output_throughput && tells_gamma && tells_length) {
    const cost::BenchRounds rounds = cost::bench_rounds(run);
    timed.seconds = rounds.round.seconds;
    timed.gamma = rounds.round.gamma;
    timed.tokens = rounds.tokens_per_step;
  }
  return timed;
}

bool alike(const std::optional<double>& a, const std::optional<double>& b, double share) {
  return !a || !b || std::abs(*a - *b) <= share * std::max(*a, *b);
}

/// In what two runs differ, as words.
std::vector<std::string> differences(const TimedRun& a, const TimedRun& b) {
  std::vector<std::string> differences;
  if (!a.model.empty() && !b.model.empty() && a.model != b.model) {
    differences.push_back(fmt::format("model {} against {}", a.model, b.model));
  }
  const std::array<std::tuple<const char*, std::optional<double>, std::optional<double>, double>, 3> numbers = {
      {{"concurrency", a.concurrency, b.concurrency, 0},
       {"input tokens", a.input_tokens, b.input_tokens, alike_tokens},
       {"output tokens", a.output_tokens, b.output_tokens, alike_tokens}}};
  for (const auto& [name, x, y, share] : numbers) {
    if (!alike(x, y, share)) differences.push_back(fmt::format("{} {} against {}", name, brief(*x), brief(*y)));
  }
  return differences;
}

Evidence evidence_of(const TimedRun& run, std::string name, std::optional<double> value) {
  return {run.run->file.string(), run.run->line, std::move(name), value};
}

void check_prompts(const TimedRun& run, Suspicions& suspicions) {
  const std::string_view dataset = run.run->label("dataset_name");
  if (!run.drafts || !dataset.starts_with("random")) return;
  suspicions.add({"random_prompts",
                  Severity::warning,
                  fmt::format("{}: drafts were measured on the data set {}: random tokens are continued by repetition, "
                              "which drafts guess better than text",
                              run.run->place(), dataset),
                  {{run.run->file.string(), run.run->line, "dataset_name", std::nullopt, std::string(dataset)}},
                  "measure on prompts of your own traffic, or take acceptance from there and times alone from here"});
}

void check_plain_beside(const TimedRun& run, const std::vector<TimedRun>& plain, Suspicions& suspicions) {
  if (plain.empty()) return;
  std::vector<std::string> fewest;
  const TimedRun* nearest = nullptr;
  for (const TimedRun& other : plain) {
    std::vector<std::string> all = differences(run, other);
    if (all.empty()) return;
    if (nearest != nullptr && all.size() >= fewest.size()) continue;
    nearest = &other;
    fewest = std::move(all);
  }
  suspicions.add({"plain_run_differs",
                  Severity::warning,
                  fmt::format("{} has no plain run like it: the nearest, {}, differs in {}", run.run->place(),
                              nearest->run->place(), fmt::join(fewest, "; ")),
                  {evidence_of(run, "max_concurrency", run.concurrency),
                   evidence_of(*nearest, "max_concurrency", nearest->concurrency),
                   evidence_of(run, "input_tokens_per_request", run.input_tokens),
                   evidence_of(*nearest, "input_tokens_per_request", nearest->input_tokens)},
                  "run the server without speculation at the same concurrency, prompts and answers"});
}

void add_round_above_its_yield(std::string_view place, double plain_steps, double gamma, std::vector<Evidence> evidence,
                               Suspicions& suspicions) {
  if (!(gamma > 0) || !(plain_steps > gamma + 1)) return;
  suspicions.add(
      {"round_above_its_yield", Severity::warning,
       fmt::format("a round of {} costs {} plain steps and puts out {} tokens at most", place, brief(plain_steps, 2),
                   brief(gamma + 1, 3)),
       std::move(evidence),
       "do not draft as it runs: look for what drafting switches off, such as CUDA graphs, a draft on the CPU or "
       "in another number type, and a verification of several tokens without a kernel of its own"});
}

void check_times(const TimedRun& run, const TimedRun& plain, Suspicions& suspicions) {
  if (!run.seconds || !plain.seconds || !differences(run, plain).empty()) return;
  const double ratio = *run.seconds / *plain.seconds;
  const std::vector<Evidence> evidence = {evidence_of(run, "round_seconds", run.seconds),
                                          evidence_of(plain, "round_seconds", plain.seconds)};
  if (run.drafts && ratio * cost::rounds_agree < 1) {
    suspicions.add(
        {"round_below_target_pass", Severity::warning,
         fmt::format("a round of {} took {} ms, less than the plain step of {} that it contains, {} ms",
                     run.run->place(), brief(1000 * *run.seconds), plain.run->place(), brief(1000 * *plain.seconds)),
         evidence,
         "see that tokens per step hold the target's own token (a step that accepts nothing makes 1), and "
         "run both again, one after the other on an otherwise idle machine"});
  }
  add_round_above_its_yield(run.run->place(), ratio, run.gamma, evidence, suspicions);
  if (!run.drafts && (ratio > alike_times || ratio < 1 / alike_times)) {
    suspicions.add({"plain_time_contradicted", Severity::warning,
                    fmt::format("the plain steps of {} and {} took {} and {} ms at the same load", plain.run->place(),
                                run.run->place(), brief(1000 * *plain.seconds), brief(1000 * *run.seconds)),
                    evidence,
                    "run both again, one after the other on an otherwise idle machine: a speedup is no better than its "
                    "plain run"});
  }
}

/// No run of a model with drafts is as fast as the plain run like it.
void check_gain(std::string_view model, const std::vector<TimedRun>& speculative, const std::vector<TimedRun>& plain,
                Suspicions& suspicions) {
  const TimedRun *best = nullptr, *beside = nullptr;
  double least = 0;
  for (const TimedRun& run : speculative) {
    for (const TimedRun& other : plain) {
      if (run.model != model || !run.seconds || !other.seconds || !differences(run, other).empty()) continue;
      const double slower = *run.seconds / (*other.seconds * run.tokens);
      if (best != nullptr && slower >= least) continue;
      best = &run;
      beside = &other;
      least = slower;
    }
  }
  if (best == nullptr || !(least > cost::rounds_agree)) return;
  suspicions.add(
      {"drafting_loses",
       Severity::warning,
       fmt::format("a round of {} makes {} tokens in the time of {} plain steps of {}", best->run->place(),
                   brief(best->tokens, 3), brief(*best->seconds / *beside->seconds, 3), beside->run->place()),
       {evidence_of(*best, "round_seconds", best->seconds), evidence_of(*beside, "round_seconds", beside->seconds)},
       "do not draft as it runs: specdec plan --bench with both files names the gamma that loses least"});
}

void check_throughput(std::span<const ServingCounts> runs, Suspicions& suspicions) {
  const auto falling = cost::falling_throughput(runs);
  if (!falling) return;
  const auto evidence = [](const ServingCounts& run) {
    return Evidence{run.file.string(), run.line, "output_throughput", *run.bench->output_throughput};
  };
  const Note warning = cost::warning_of(*falling);
  suspicions.add({warning.code,
                  Severity::warning,
                  warning.message,
                  {evidence(*falling->fewer), evidence(*falling->more)},
                  std::string(cost::remedy_of_falling_throughput)});
}

void check_completed(const ServingCounts& run, Suspicions& suspicions) {
  const traces::BenchRun& bench = *run.bench;
  if (!bench.completed || !bench.num_prompts || *bench.completed >= *bench.num_prompts) return;
  suspicions.add({"requests_failed",
                  Severity::warning,
                  fmt::format("{}: {} of {} requests were completed", run.place(), brief(*bench.completed),
                              brief(*bench.num_prompts)),
                  {{run.file.string(), run.line, "completed", *bench.completed},
                   {run.file.string(), run.line, "num_prompts", *bench.num_prompts}},
                  "see the server's log for why, and run again: requests that fail leave the others a smaller batch"});
}

void check_units(std::span<const ServingCounts> runs, Suspicions& suspicions) {
  std::vector<const ServingCounts*> rising;
  for (const ServingCounts& run : runs) {
    if (run.bench->mean_tpot_ms.value_or(0) > 0) rising.push_back(&run);
  }
  std::stable_sort(rising.begin(), rising.end(), [](const ServingCounts* a, const ServingCounts* b) {
    return *a->bench->mean_tpot_ms < *b->bench->mean_tpot_ms;
  });
  for (std::size_t i = 1; i < rising.size(); ++i) {
    const ServingCounts& below = *rising[i - 1];
    const ServingCounts& above = *rising[i];
    const double ratio = *above.bench->mean_tpot_ms / *below.bench->mean_tpot_ms;
    if (ratio < far_times) continue;
    const std::string_view mistaken =
        i <= rising.size() - i ? "the shorter may be seconds" : "the longer may be microseconds";
    suspicions.add({"times_far_apart",
                    Severity::warning,
                    fmt::format("{} of {} runs took up to {} ms a token ({}), and the others {} ms or more ({}): {}", i,
                                rising.size(), brief(*below.bench->mean_tpot_ms), below.place(),
                                brief(*above.bench->mean_tpot_ms), above.place(), mistaken),
                    {{below.file.string(), below.line, "mean_tpot_ms", *below.bench->mean_tpot_ms},
                     {above.file.string(), above.line, "mean_tpot_ms", *above.bench->mean_tpot_ms}},
                    "write mean_tpot_ms in milliseconds in all files"});
    return;
  }
}

}  // namespace

void check_runs(std::span<const ServingCounts> runs, Suspicions& suspicions) {
  std::vector<TimedRun> speculative, plain;
  check_units(runs, suspicions);
  check_throughput(runs, suspicions);
  for (const ServingCounts& run : runs) {
    check_completed(run, suspicions);
    try {
      TimedRun one = timed(run);
      (one.drafts ? speculative : plain).push_back(std::move(one));
    } catch (const traces::FileError& reason) {
      suspicions.add({"run_unusable",
                      Severity::error,
                      reason.what(),
                      {{run.file.string(), run.line, reason.field(), std::nullopt, reason.found()}},
                      "no speedup can be taken from this run: mend it or leave it out"});
    }
  }
  for (const TimedRun& run : speculative) {
    check_prompts(run, suspicions);
    check_plain_beside(run, plain, suspicions);
    for (const TimedRun& other : plain) check_times(run, other, suspicions);
  }
  std::set<std::string_view> models;
  for (const TimedRun& run : speculative) models.insert(run.model);
  for (const std::string_view model : models) check_gain(model, speculative, plain, suspicions);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (std::size_t j = i + 1; j < plain.size(); ++j) check_times(plain[j], plain[i], suspicions);
  }
}

void check_logs(std::span<const ServingCounts> counts, Suspicions& suspicions) {
  std::vector<cost::ObservedRound> rounds;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto last = std::find_if(first, counts.end(), [&](const auto& one) { return one.file != first->file; });
    try {
      const std::vector<cost::ObservedRound> of_file = cost::log_rounds({first, last}).rounds;
      rounds.insert(rounds.end(), of_file.begin(), of_file.end());
    } catch (const traces::FileError&) {
      // It times no round.
    }
    first = last;
  }
  const auto evidence = [&](const cost::ObservedRound& round) {
    const auto its =
        std::find_if(counts.begin(), counts.end(), [&](const auto& one) { return one.place() == round.name; });
    return Evidence{its->file.string(), its->line, "round_seconds", round.seconds};
  };
  for (const cost::ObservedRound& round : rounds) {
    const auto plain = std::find_if(rounds.begin(), rounds.end(), [&](const cost::ObservedRound& other) {
      return other.gamma == 0 && std::abs(std::log(other.batch / round.batch)) < std::log(cost::one_load);
    });
    if (plain == rounds.end()) continue;
    add_round_above_its_yield(round.name, round.seconds / plain->seconds, round.gamma,
                              {evidence(round), evidence(*plain)}, suspicions);
  }
}

}  // namespace specdec::planner
