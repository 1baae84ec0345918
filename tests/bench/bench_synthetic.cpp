// How many tokens a second does Algorithm 1 emit on a fixed pair of laws, alias tables made before, and how many rounds
// at one acceptance rate? docs/benchmarks.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "analysis/core/kernels.hpp"
#include "sim/decoding.hpp"
#include "sim/synthetic_rounds.hpp"
#include "sim/table_models.hpp"
#include "tests/bench/timing.hpp"

using namespace specdec;

namespace {

struct SyntheticLaws {
  std::vector<double> p;
  std::vector<double> q;
};

/// Logits of standard deviation 2 around which the draft errs by 0.7, as Box and Muller's normal numbers.
SyntheticLaws synthetic_laws(std::int64_t vocab) {
  SyntheticLaws laws;
  double sum_p = 0;
  double sum_q = 0;
  std::uint64_t state = 1;
  const auto uniform = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (static_cast<double>(state >> 40) + 0.5) * 0x1p-24;
  };
  for (std::int64_t i = 0; i < vocab; ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::acos(-1.0) * uniform();
    laws.p.push_back(std::exp(2 * radius * std::cos(angle)));
    laws.q.push_back(laws.p.back() * std::exp(0.7 * radius * std::sin(angle)));
    sum_p += laws.p.back();
    sum_q += laws.q.back();
  }
  for (double& x : laws.p) x /= sum_p;
  for (double& x : laws.q) x /= sum_q;
  return laws;
}

void measure(const std::string& what, std::int64_t repeats, const std::function<double()>& millions) {
  double done = 0;
  const bench::Seconds seconds = bench::median_seconds(repeats, [&] { done = millions(); });
  fmt::print("{:<56} {:9.2f} million/s {:9.2f} per core-second\n", what, done / seconds.wall, done / seconds.processor);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t vocab = 32000;
  std::int64_t gamma = 5;
  std::int64_t sequences = 8192;
  std::int64_t repeats = 7;
  CLI::App app("Speed of rounds on synthetic laws");
  app.add_option("--vocab", vocab, "tokens")->capture_default_str();
  app.add_option("--gamma", gamma, "drafted tokens per round")->capture_default_str();
  app.add_option("--sequences", sequences, "sequences of 4096 rounds")->capture_default_str();
  app.add_option("--rounds", repeats, "runs of each line, of which the median is printed")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const SyntheticLaws laws = synthetic_laws(vocab);
  const core::TargetDistribution p(laws.p);
  const core::DraftDistribution q(laws.q);
  const core::AcceptanceRate rate = core::acceptance_rate(p, q);
  const sim::AliasPair pair(p, q);
  fmt::print("{} tokens, alpha {:.4f}, gamma {}\n", vocab, rate.alpha(), gamma);
  const bench::Seconds tables = bench::median_seconds(repeats, [&] { sim::AliasPair(p, q); });
  fmt::print("alias tables made in {:.2f} ms\n", 1e3 * tables.processor);
  sim::SyntheticRoundsOptions options;
  options.sequences = sequences;
  for (const std::int64_t threads : {1, 2}) {
    options.threads = threads;
    for (const bool count : {false, true}) {
      options.count_tokens = count;
      measure(fmt::format("Algorithm 1, tokens{}, {} thread(s)", count ? " and their histogram" : "", threads), repeats,
              [&] { return static_cast<double>(simulate_rounds(pair, gamma, options).tokens()) / 1e6; });
    }
    options.count_tokens = false;
    measure(fmt::format("one rate, rounds, {} thread(s)", threads), repeats,
            [&] { return static_cast<double>(simulate_rounds(rate, gamma, options).rounds()) / 1e6; });
  }
  // For comparison the decoder of models that see their prefix, on tables of bigrams.
  sim::TablePair bigrams = sim::synthetic_bigram_pair(1000, 0.7, 1);
  const std::vector<sim::Token> prompt = {0};
  sim::DecodingOptions decoding;
  decoding.gamma = gamma;
  decoding.max_new_tokens = 256;
  measure("decoder over 1000 tokens' bigrams, tokens, 1 thread(s)", repeats, [&] {
    std::int64_t tokens = 0;
    for (std::uint64_t sequence = 0; sequence < 64; ++sequence) {
      const sim::RandomStream stream(0, sequence);
      tokens += decode_speculatively(bigrams.target, bigrams.draft, prompt, decoding, stream).counters.tokens;
    }
    return static_cast<double>(tokens) / 1e6;
  });
}
