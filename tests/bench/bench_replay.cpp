// How fast is exact replay of the scalar tier? From the two log-probabilities of each token, as they lie in a trace,
// to the tokens per step of all gammas from 1 to 16 with their intervals, sequences shared out among threads.
// docs/benchmarks.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "analysis/core/token_acceptance.hpp"
#include "analysis/estimate/adaptive_drafting.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "tests/bench/timing.hpp"

using namespace specdec;

namespace {

struct Recording {
  std::vector<float> target;
  std::vector<float> draft;
  std::vector<std::int64_t> sequence;
};

/// Log-probabilities that look like text: many sure tokens, some poor ones.
Recording record(std::int64_t tokens, std::int64_t length) {
  Recording recording;
  std::uint64_t state = 1;
  const auto uniform = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(state >> 40) * 0x1p-24f;
  };
  for (std::int64_t t = 0; t < tokens; ++t) {
    recording.target.push_back(3 * std::log(uniform() + 1e-6F));
    recording.draft.push_back(std::min(0.0F, recording.target.back() + uniform() - 0.7F));
    recording.sequence.push_back(t / length);
  }
  return recording;
}

/// By the clock on the wall and by the processor time of all threads, which other processes disturb less.
void measure(const std::string& what, std::int64_t tokens, std::int64_t rounds, const std::function<void()>& work) {
  const bench::Seconds seconds = bench::median_seconds(rounds, work);
  const double millions = static_cast<double>(tokens) / 1e6;
  fmt::print("{:<64} {:8.1f} million tokens/s {:8.1f} per core-second\n", what, millions / seconds.wall,
             millions / seconds.processor);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t tokens = 1 << 23;
  std::int64_t length = 512;
  std::int64_t batch = 1 << 16;
  std::int64_t threads = 2;
  std::int64_t rounds = 7;
  CLI::App app("Speed of exact replay from the scalar tier");
  app.add_option("--tokens", tokens)->capture_default_str();
  app.add_option("--length", length, "tokens of a sequence")->capture_default_str();
  app.add_option("--batch", batch, "positions that are handed over at once")->capture_default_str();
  app.add_option("--threads", threads)->capture_default_str();
  app.add_option("--rounds", rounds)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const Recording recording = record(tokens, length);
  std::vector<double> acceptance(static_cast<std::size_t>(batch));
  const auto for_each_batch = [&](const auto& use) {
    for (std::int64_t first = 0; first < tokens; first += batch) {
      const auto begin = static_cast<std::size_t>(first);
      const auto n = static_cast<std::size_t>(std::min(batch, tokens - first));
      const std::span<double> out = std::span(acceptance).first(n);
      core::token_acceptance(std::span(recording.target).subspan(begin, n),
                             std::span(recording.draft).subspan(begin, n), out);
      use(begin, std::span<const double>(out));
    }
  };

  measure("acceptance from log-probabilities, 1 thread", tokens, rounds,
          [&] { for_each_batch([](std::size_t, std::span<const double>) {}); });

  for (const bool by_position : {false, true}) {
    for (const std::int64_t workers : {std::int64_t{1}, threads}) {
      const auto estimate_all = [&] {
        estimate::ReplayEstimateOptions options;
        options.replay = {.max_gamma = 16, .by_position = by_position};
        options.threads = workers;
        estimate::ReplayEstimates estimates(options);
        for_each_batch([&](std::size_t begin, std::span<const double> a) {
          estimates.add({a, {std::span(recording.sequence).subspan(begin, a.size())}});
        });
        estimates.finish();
        return estimates.report();
      };
      measure(
          fmt::format("replay, gammas 0 to 16{}, intervals, threads: {}", by_position ? ", by position" : "", workers),
          tokens, rounds, estimate_all);
    }
  }

  const auto adapt = [&] {
    estimate::AdaptiveOptions options;
    options.cost = core::StepCost{.c = 0.05};
    options.threads = threads;
    estimate::AdaptiveDrafting adaptive(options);
    for_each_batch([&](std::size_t begin, std::span<const double> a) {
      const std::vector<std::vector<double>> below(options.thresholds.size(), std::vector<double>(a.size(), 0.5));
      adaptive.add({a, a, below, {std::span(recording.sequence).subspan(begin, a.size())}});
    });
    adaptive.finish();
  };
  measure(fmt::format("72 confidence policies, threads: {}", threads), tokens, 1,
          adapt);
}
