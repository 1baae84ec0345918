#include "analysis/cost/observed_rounds.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"

namespace specdec::cost {
namespace {

using traces::FileError;
using traces::ServingCounts;

[[noreturn]] void refuse(const ServingCounts& run, std::string_view field, std::string found, std::string expected) {
  throw FileError(run.file, run.line > 0 ? FileError::line(run.line) : FileError::whole_file(), std::string(field),
                  std::move(found), std::move(expected));
}

double positive(const ServingCounts& run, std::string_view field, const std::optional<double>& value) {
  if (!value) refuse(run, field, "missing", "a number above 0");
  if (!(*value > 0) || !std::isfinite(*value)) refuse(run, field, fmt::format("{}", *value), "a number above 0");
  return *value;
}

std::string name_of(const ServingCounts& run) {
  return run.line > 0 ? fmt::format("{}:{}", run.file.string(), run.line) : run.file.string();
}

struct Drafting {
  double gamma = 0;
  double tokens_per_step = 1;
};

Drafting drafting_of(const ServingCounts& run, const std::optional<double>& stated_gamma) {
  const double rounds = run.rounds.value_or(0);
  if (rounds == 0) return {};
  positive(run, "rounds", rounds);
  Drafting drafting;
  if (run.accepted) {
    drafting.tokens_per_step = 1 + *run.accepted / rounds;
  } else if (run.emitted) {
    drafting.tokens_per_step = *run.emitted / rounds;
  } else {
    refuse(run, "accepted tokens", "missing", "given, since there were rounds");
  }
  if (run.drafted) {
    drafting.gamma = *run.drafted / rounds;
  } else if (run.gamma || stated_gamma) {
    drafting.gamma = run.gamma ? static_cast<double>(*run.gamma) : *stated_gamma;
  } else {
    refuse(run, "drafted tokens", "missing", "given, or gamma be stated");
  }
  // Counts that come from rounded rates may miss the bound by as much.
  constexpr double rounding = 0.01;
  if (!(1 <= drafting.tokens_per_step && drafting.tokens_per_step <= (drafting.gamma + 1) * (1 + rounding))) {
    refuse(run, "tokens per step", fmt::format("{:.6g}", drafting.tokens_per_step),
           fmt::format("in [1, {:.6g}], with {:.6g} drafted tokens a round", drafting.gamma + 1, drafting.gamma));
  }
  return drafting;
}

}  // namespace

BenchRounds bench_rounds(const ServingCounts& run, std::optional<double> gamma) {
  if (!run.bench) refuse(run, "record", "no benchmark run", "a benchmark run");
  const traces::BenchRun& bench = *run.bench;
  const double throughput = positive(run, "output_throughput", bench.output_throughput);
  const double seconds_per_token = positive(run, "mean_tpot_ms", bench.mean_tpot_ms) / 1000;
  const Drafting drafting = drafting_of(run, gamma);
  BenchRounds rounds;
  rounds.tokens_per_step = drafting.tokens_per_step;
  rounds.seconds_per_output_token = seconds_per_token;
  rounds.output_tokens_per_second = throughput;
  rounds.round.name = name_of(run);
  rounds.round.gamma = drafting.gamma;
  rounds.round.batch = throughput * seconds_per_token;
  rounds.round.seconds = seconds_per_token * drafting.tokens_per_step;
  if (bench.total_input_tokens && bench.total_output_tokens && bench.completed) {
    const double requests = positive(run, "completed", bench.completed);
    rounds.round.context = (*bench.total_input_tokens + *bench.total_output_tokens / 2) / requests;
  }
  // Requests in their decoding phase are among those in flight; the mean over requests weighs short ones like long
  // ones.
  constexpr double slack = 1.25;
  if (bench.max_concurrency && rounds.round.batch > slack * *bench.max_concurrency) {
    refuse(run, "output_throughput * mean_tpot_ms",
           fmt::format("{:.4g} requests decoding at a time", rounds.round.batch),
           fmt::format("at most max_concurrency, {}", *bench.max_concurrency));
  }
  return rounds;
}

std::vector<ObservedRound> window_rounds(std::span<const ServingCounts> windows, std::optional<double> gamma) {
  std::vector<const ServingCounts*> known;
  for (const ServingCounts& window : windows)
    if (window.window) known.push_back(&window);
  std::vector<ObservedRound> rounds;
  for (std::size_t i = 1; i + 1 < known.size(); ++i) {
    const traces::EngineWindow& window = *known[i]->window;
    const bool decodes_alone = window.running && *window.running > 0 && window.waiting.value_or(0) == 0 &&
                               window.prompt_tokens_per_second && *window.prompt_tokens_per_second == 0 &&
                               window.generation_tokens_per_second && *window.generation_tokens_per_second > 0;
    const bool steady =
        known[i - 1]->window->running == window.running && known[i + 1]->window->running == window.running;
    if (!decodes_alone || !steady) continue;
    const Drafting drafting = drafting_of(*known[i], gamma);
    ObservedRound& round = rounds.emplace_back();
    round.name = name_of(*known[i]);
    round.gamma = drafting.gamma;
    round.batch = *window.running;
    round.seconds = *window.running * drafting.tokens_per_step / *window.generation_tokens_per_second;
  }
  return rounds;
}

}  // namespace specdec::cost
