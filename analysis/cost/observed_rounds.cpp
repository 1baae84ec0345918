#include "analysis/cost/observed_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "analysis/cost/mean_drafts.hpp"
#include "traces/file_error.hpp"

namespace specdec::cost {
namespace {

using traces::ServingCounts;

double positive(const ServingCounts& run, std::string_view field, const std::optional<double>& value) {
  if (!value) throw run.refusal(std::string(field), "missing or null", "a number above 0");
  if (!(*value > 0) || !std::isfinite(*value))
    throw run.refusal(std::string(field), fmt::format("{}", *value), "a number above 0");
  return *value;
}

struct Drafting {
  double gamma = 0;
  double tokens_per_step = 1;
};

void require_possible(const ServingCounts& run, const Drafting& drafting) {
  // Counts that come from rounded rates may miss the bound by as much.
  constexpr double rounding = 0.01;
  if (1 <= drafting.tokens_per_step && drafting.tokens_per_step <= (drafting.gamma + 1) * (1 + rounding)) return;
  throw run.refusal(
      "tokens per step", fmt::format("{:.6g}", drafting.tokens_per_step),
      fmt::format("in [1, {:.6g}], with {:.6g} drafted tokens a round", drafting.gamma + 1, drafting.gamma));
}

Drafting drafting_of(const ServingCounts& run, const std::optional<double>& stated_gamma) {
  const double rounds = run.rounds.value_or(0);
  if (rounds == 0 && !run.tokens_per_round) return {};
  Drafting drafting;
  if (rounds == 0) {
    drafting.tokens_per_step = *run.tokens_per_round;
  } else if (positive(run, "rounds", rounds); run.accepted) {
    drafting.tokens_per_step = 1 + *run.accepted / rounds;
  } else if (run.emitted) {
    drafting.tokens_per_step = *run.emitted / rounds;
  } else {
    throw run.refusal("accepted tokens", "missing", "given, since there were rounds");
  }
  if (run.drafted && rounds > 0) {
    drafting.gamma = *run.drafted / rounds;
  } else if (run.gamma || stated_gamma) {
    drafting.gamma = run.gamma ? static_cast<double>(*run.gamma) : *stated_gamma;
  } else {
    throw run.refusal("drafted tokens", "missing", "given, or gamma be stated");
  }
  require_possible(run, drafting);
  return drafting;
}

}  // namespace

bool drafts_uncounted(const ServingCounts& run) {
  return run.gamma.value_or(0) > 0 && run.rounds.value_or(0) == 0 && !run.tokens_per_round;
}

BenchRounds bench_rounds(const ServingCounts& run, std::optional<double> gamma, std::optional<double> tokens_per_step) {
  if (!run.bench) throw run.refusal("record", "no benchmark run", "a benchmark run");
  const traces::BenchRun& bench = *run.bench;
  const double throughput = positive(run, "output_throughput", bench.output_throughput);
  const double seconds_per_token = positive(run, "mean_tpot_ms", bench.mean_tpot_ms) / 1000;
  Drafting drafting;
  if (!drafts_uncounted(run)) {
    drafting = drafting_of(run, gamma);
  } else if (tokens_per_step) {
    drafting = {static_cast<double>(*run.gamma), *tokens_per_step};
    require_possible(run, drafting);
  } else {
    throw run.refusal("tokens per step", "missing", "given by the run, or known from elsewhere");
  }
  BenchRounds rounds;
  rounds.tokens_per_step = drafting.tokens_per_step;
  rounds.seconds_per_output_token = seconds_per_token;
  rounds.output_tokens_per_second = throughput;
  rounds.round.name = run.place();
  rounds.round.gamma = drafting.gamma;
  rounds.round.batch = throughput * seconds_per_token;
  rounds.round.seconds = seconds_per_token * drafting.tokens_per_step;
  if (bench.total_input_tokens && bench.total_output_tokens && bench.completed) {
    const double requests = positive(run, "completed", bench.completed);
    rounds.round.context = (*bench.total_input_tokens + *bench.total_output_tokens / 2) / requests;
  } else if (bench.input_tokens_per_request && bench.output_tokens_per_request) {
    rounds.round.context = *bench.input_tokens_per_request + *bench.output_tokens_per_request / 2;
  }
  // Requests in their decoding phase are among those in flight; the mean over requests weighs short ones like long
  // ones.
  constexpr double slack = 1.25;
  if (bench.max_concurrency && rounds.round.batch > slack * *bench.max_concurrency) {
    throw run.refusal("output_throughput * mean_tpot_ms",
                      fmt::format("{:.4g} requests decoding at a time", rounds.round.batch),
                      fmt::format("at most max_concurrency, {}", *bench.max_concurrency));
  }
  return rounds;
}

std::function<double(double gamma)> mean_drafts_of(std::span<const ServingCounts* const> counts) {
  MeanDrafts drafts;
  for (const ServingCounts* one : counts) {
    if (one->shape == traces::DraftShape::tree || !(one->rounds.value_or(0) > 0) || one->gamma.value_or(0) < 1)
      continue;
    if (one->made) {
      drafts.add(*one->gamma, *one->rounds, one->made->rounds, one->made->tokens, one->accepted.value_or(0));
    } else if (one->drafted) {
      drafts.add(*one->gamma, *one->rounds, *one->rounds, *one->drafted, one->accepted.value_or(0));
    }
  }
  if (!drafts.some_are_short()) return {};
  return drafts;
}

std::optional<FallingThroughput> falling_throughput(std::span<const ServingCounts> runs) {
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t>, std::vector<const ServingCounts*>> alike;
  for (const ServingCounts& run : runs) {
    if (!run.bench || !run.bench->max_concurrency || !(run.bench->output_throughput.value_or(0) > 0)) continue;
    alike[{run.label("model_name"), run.gamma.value_or(0), run.verified_per_round.value_or(0)}].push_back(&run);
  }
  std::optional<FallingThroughput> found;
  double least = throughput_held;
  for (const auto& [what, of_one] : alike) {
    for (const ServingCounts* fewer : of_one) {
      for (const ServingCounts* more : of_one) {
        if (*more->bench->max_concurrency < several_times_the_load * *fewer->bench->max_concurrency) continue;
        const double share = *more->bench->output_throughput / *fewer->bench->output_throughput;
        if (share >= least) continue;
        least = share;
        found = {fewer, more};
      }
    }
  }
  return found;
}

Note warning_of(const FallingThroughput& falling) {
  const auto load = [](const ServingCounts& run) { return *run.bench->max_concurrency; };
  const auto speed = [](const ServingCounts& run) { return *run.bench->output_throughput; };
  return {"throughput_falls_with_load",
          fmt::format("{} put out {:.4g} tokens/s at concurrency {:g}, and {} {:.4g} at {:g}: as if the throughput "
                      "were of each request",
                      falling.fewer->place(), speed(*falling.fewer), load(*falling.fewer), falling.more->place(),
                      speed(*falling.more), load(*falling.more))};
}

std::optional<std::int64_t> gamma_of_mean(double drafted_per_round) {
  const double above = std::ceil(drafted_per_round);
  if (!(above > 0 && above - drafted_per_round <= 0.05 * drafted_per_round)) return std::nullopt;
  return static_cast<std::int64_t>(above);
}

traces::ServingCounts run_of_answers(std::span<const ServingCounts> answers) {
  const auto first = std::find_if(answers.begin(), answers.end(), [](const auto& answer) { return answer.bench; });
  if (first == answers.end()) throw answers.front().refusal("predicted_ms", "missing", "the time of an answer");
  const std::string_view slot = first->label("slot");
  ServingCounts run;
  run.file = first->file;
  run.engine = first->engine;
  run.format = first->format;
  run.labels = first->labels;
  run.unit = traces::CountUnit::run;
  traces::BenchRun bench;
  double seconds = 0, rounds = 0, drafted = 0, accepted = 0, emitted = 0, prompts = 0, outputs = 0, completed = 0;
  const double together = first->bench->max_concurrency.value_or(1);
  bool knows_prompts = true, tells_steps = true;
  for (const ServingCounts& answer : answers) {
    if (!answer.bench) continue;
    if (answer.label("slot") != slot) {
      const std::string its(answer.label("slot"));
      throw answer.refusal("id_slot", its.empty() ? "missing" : its,
                           fmt::format("{}, as in the answers before: those of several slots are decoded together, and "
                                       "how many at a time is not told; ask one at a time",
                                       slot));
    }
    const traces::BenchRun& one = *answer.bench;
    seconds += positive(answer, "predicted_ms", one.duration_s);
    completed += one.completed.value_or(1);
    emitted += *answer.emitted;
    rounds += answer.rounds.value_or(0);
    tells_steps = tells_steps && answer.steps;
    drafted += answer.drafted.value_or(0);
    accepted += answer.accepted.value_or(0);
    knows_prompts = knows_prompts && one.total_input_tokens;
    prompts += one.total_input_tokens.value_or(0);
    outputs += one.total_output_tokens.value_or(0);
    if (!run.rule) run.rule = answer.rule;
    if (run.shape == traces::DraftShape::unknown) run.shape = answer.shape;
  }
  run.emitted = emitted;
  if (drafted > 0) {
    run.rounds = emitted - accepted;
    if (tells_steps && rounds < *run.rounds) run.made = {rounds, drafted};
    run.drafted = drafted;
    run.accepted = accepted;
  }
  bench.max_concurrency = together;
  bench.completed = bench.num_prompts = completed;
  if (knows_prompts) bench.total_input_tokens = prompts;
  bench.total_output_tokens = outputs;
  bench.duration_s = seconds;
  bench.mean_tpot_ms = 1000 * seconds / emitted;
  bench.output_throughput = together * emitted / seconds;
  run.bench = bench;
  return run;
}

namespace {

bool has_counts(const ServingCounts& window) {
  return window.rounds || window.drafted || window.emitted || window.tokens_per_round;
}

/// Those with window figures.
using Windows = std::vector<const ServingCounts*>;

/// Which windows are taken for decoding: those between two others that ran as many requests, those in which no prompt
/// is known to have been read, or all that put out tokens.
enum class Decoding { surely, perhaps, beside_prompts };

std::vector<ObservedRound> rounds_of(const Windows& windows, bool speculative, std::optional<double> gamma,
                                     Decoding which) {
  const bool surely = which == Decoding::surely;
  std::vector<ObservedRound> rounds;
  const auto runs_alike = [&](std::size_t i, std::size_t j) {
    return j < windows.size() && windows[j]->window->running == windows[i]->window->running;
  };
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const ServingCounts& counts = *windows[i];
    const traces::EngineWindow& window = *counts.window;
    const bool reads_nothing = window.prompt_tokens_per_second == 0.0 ||
                               (!surely && !window.prompt_tokens_per_second.has_value());
    const bool alone = (window.waiting == 0.0 && reads_nothing) || which == Decoding::beside_prompts;
    const bool decodes = window.running.value_or(0) > 0 && window.generation_tokens_per_second.value_or(0) > 0;
    const bool steady = !surely || (i > 0 && runs_alike(i, i - 1) && runs_alike(i, i + 1));
    const bool drafts_known = !speculative || counts.rounds.value_or(0) > 0 || counts.tokens_per_round;
    if (!decodes || !alone || !steady || !drafts_known) continue;
    const Drafting drafting = drafting_of(counts, gamma);
    ObservedRound& round = rounds.emplace_back();
    round.name = counts.place();
    round.gamma = drafting.gamma;
    round.batch = *window.running;
    round.seconds = *window.running * drafting.tokens_per_step / *window.generation_tokens_per_second;
  }
  return rounds;
}

/// Neighbouring rounds of one batch as one.
ObservedRound mean_round(std::span<const ObservedRound> rounds) {
  ObservedRound mean = rounds.front();
  double per_second = 0, drafts_per_second = 0;
  for (const ObservedRound& round : rounds) {
    per_second += 1 / round.seconds;
    drafts_per_second += round.gamma / round.seconds;
  }
  mean.seconds = static_cast<double>(rounds.size()) / per_second;
  mean.gamma = drafts_per_second / per_second;
  return mean;
}

/// The rounds of one engine, taken together by batch.
void add_by_load(const std::vector<ObservedRound>& rounds, std::vector<ObservedRound>& all) {
  std::map<double, std::vector<ObservedRound>> by_batch;
  for (const ObservedRound& round : rounds) by_batch[round.batch].push_back(round);
  for (const auto& load : by_batch) {
    const std::span<const ObservedRound> same = load.second;
    const std::size_t stretches = std::min(rounds_of_one_load, same.size());
    for (std::size_t i = 0; i < stretches; ++i) {
      const std::size_t begin = i * same.size() / stretches, end = (i + 1) * same.size() / stretches;
      all.push_back(mean_round(same.subspan(begin, end - begin)));
    }
  }
}

}  // namespace

std::vector<double> LogRounds::usual_batches() const {
  if (rounds.empty()) return {};
  const auto [least, most] = std::minmax_element(
      rounds.begin(), rounds.end(), [](const ObservedRound& a, const ObservedRound& b) { return a.batch < b.batch; });
  std::vector<double> batches = {least->batch};
  double power = 1;
  for (; power <= least->batch; power *= 2) continue;
  for (; power < most->batch; power *= 2) batches.push_back(power);
  if (most->batch > least->batch) batches.push_back(most->batch);
  return batches;
}

LogRounds log_rounds(std::span<const ServingCounts> windows, std::optional<double> gamma) {
  struct EngineOfLog {
    const ServingCounts* first = nullptr;
    Windows windows;
  };
  LogRounds log;
  std::vector<EngineOfLog> engines;
  std::map<std::filesystem::path, bool> speculative, steady;
  for (const ServingCounts& counts : windows) {
    speculative[counts.file] |= has_counts(counts);
    if (!counts.window) continue;
    ++log.windows;
    const auto known = std::find_if(engines.begin(), engines.end(), [&](const EngineOfLog& engine) {
      return engine.first->file == counts.file && engine.first->labels == counts.labels;
    });
    if (known != engines.end()) {
      known->windows.push_back(&counts);
    } else {
      engines.push_back({&counts, {&counts}});
    }
  }
  for (const EngineOfLog& engine : engines) {
    const auto taken = [&](Decoding which) {
      return rounds_of(engine.windows, speculative[engine.first->file], gamma, which);
    };
    auto rounds = taken(Decoding::surely);
    log.steady_windows += rounds.size();
    // A short log has windows of which nothing says whether requests began or ended in them.
    if (rounds.empty()) rounds = taken(Decoding::perhaps);
    if (rounds.empty()) rounds = taken(Decoding::beside_prompts);
    steady[engine.first->file] |= !rounds.empty();
    add_by_load(rounds, log.rounds);
  }
  for (const auto& [file, any] : steady) {
    if (any) continue;
    throw traces::FileError(file, "windows that decode", "none", "at least one: requests running and tokens put out");
  }
  return log;
}

std::optional<double> join_batches(std::span<ObservedRound> rounds) {
  if (rounds.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(
      rounds.begin(), rounds.end(), [](const ObservedRound& a, const ObservedRound& b) { return a.batch < b.batch; });
  if (most->batch > one_load * least->batch) return std::nullopt;
  const bool has_plain = std::any_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.gamma == 0; });
  double sum = 0, count = 0;
  for (const ObservedRound& round : rounds) {
    if (has_plain && round.gamma > 0) continue;
    sum += round.batch;
    ++count;
  }
  const double batch = sum / count;
  for (ObservedRound& round : rounds) round.batch = batch;
  return batch;
}

}  // namespace specdec::cost
