// How often do the 95% intervals hold the truth? Synthetic recordings of known laws, drawn directly: the acceptance
// rate from betas and from emitted tokens, tokens per step by exact replay, and the percentile bootstrap over sequences
// as a contrast. docs/validation.md states the table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/theory/replay.hpp"

using namespace specdec;
using estimate::AcceptanceEstimate;
using estimate::Interval;
using estimate::TaskMix;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  double uniform() { return std::uniform_real_distribution<>()(generator_); }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(generator_); }
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::mt19937_64 generator_;
};

struct Sequence {
  std::int32_t task = 0;
  std::vector<double> betas;
  std::vector<double> emitted;  // a_t, with mean beta_t at every prefix
};

/// A law of whole sequences. `number` is the sequence's place in its recording, for mixes fixed by design.
struct Law {
  std::string name;
  TaskMix mix;
  std::function<Sequence(Random&, std::size_t number)> draw;
};

std::size_t length(Random& random, double least, double most) {
  return static_cast<std::size_t>(least + (most - least + 1) * random.uniform());
}

/// a_t of a token emitted where the mean acceptance is beta: 1 for a share of .8 beta, else a constant.
double emitted_acceptance(Random& random, double beta) {
  const double certain = 0.8 * beta;
  return random.chance(certain) ? 1 : (beta - certain) / (1 - certain);
}

void append(Sequence& sequence, Random& random, double beta) {
  sequence.betas.push_back(beta);
  sequence.emitted.push_back(emitted_acceptance(random, beta));
}

/// Independent betas: the larger of two uniforms, mean 2/3.
Sequence independent(Random& random, std::size_t) {
  Sequence sequence;
  const std::size_t n = length(random, 50, 350);
  for (std::size_t t = 0; t < n; ++t) append(sequence, random, std::max(random.uniform(), random.uniform()));
  return sequence;
}

/// Easy stretches of .9 that last 10 tokens and hard ones of .3 that last 5.
Sequence sticky(Random& random, std::size_t) {
  Sequence sequence;
  const std::size_t n = length(random, 50, 350);
  bool easy = random.chance(2.0 / 3);
  for (std::size_t t = 0; t < n; ++t) {
    append(sequence, random, easy ? 0.9 : 0.3);
    easy = random.chance(easy ? 0.9 : 0.2);
  }
  return sequence;
}

/// Long texts of an easy task, short ones of a hard task.
Sequence of_task(Random& random, bool easy) {
  Sequence sequence;
  sequence.task = easy ? 0 : 1;
  const std::size_t n = easy ? length(random, 200, 400) : length(random, 50, 150);
  for (std::size_t t = 0; t < n; ++t) append(sequence, random, (easy ? 0.85 : 0.5) + 0.2 * (random.uniform() - 0.5));
  return sequence;
}

Sequence random_mixture(Random& random, std::size_t) { return of_task(random, random.chance(0.5)); }
Sequence fixed_mixture(Random& random, std::size_t number) { return of_task(random, number % 2 == 0); }

/// Temperature 0: every acceptance is 0 or 1. Rejections begin with the given chance and go on with another.
Sequence greedy(Random& random, double begins, double goes_on) {
  Sequence sequence;
  const std::size_t n = length(random, 150, 450);
  bool rejected = random.chance(begins / (1 + begins - goes_on));
  for (std::size_t t = 0; t < n; ++t) {
    sequence.betas.push_back(rejected ? 0 : 1);
    rejected = random.chance(rejected ? goes_on : begins);
  }
  sequence.emitted = sequence.betas;
  return sequence;
}

const std::vector<Law> laws{
    {"independent betas", TaskMix::random, independent},
    {"sticky Markov betas", TaskMix::random, sticky},
    {"two tasks, random mix", TaskMix::random, random_mixture},
    {"two tasks, fixed mix", TaskMix::fixed, fixed_mixture},
    {"two tasks, fixed mix, not stratified", TaskMix::random, fixed_mixture},
    {"temperature 0, alpha .98", TaskMix::random, [](Random& r, std::size_t) { return greedy(r, 0.02, 0.02); }},
    {"temperature 0, alpha .98, in bursts", TaskMix::random,
     [](Random& r, std::size_t) { return greedy(r, 0.0102, 0.5); }},
    {"temperature 0, alpha .995", TaskMix::random, [](Random& r, std::size_t) { return greedy(r, 0.005, 0.005); }},
    {"temperature 0, alpha .995, in bursts", TaskMix::random,
     [](Random& r, std::size_t) { return greedy(r, 0.0025, 0.5); }},
};

struct Truth {
  double alpha = 0, tokens_per_step = 0;
};

Truth truth_of(const Law& law, std::int64_t gamma, std::int64_t sequences) {
  Random random(12345);
  double tokens = 0;
  double betas = 0;
  double steps = 0;
  for (std::int64_t k = 0; k < sequences; ++k) {
    const Sequence sequence = law.draw(random, static_cast<std::size_t>(k));
    tokens += static_cast<double>(sequence.betas.size());
    betas += std::accumulate(sequence.betas.begin(), sequence.betas.end(), 0.0);
    steps += theory::replay_steps(sequence.emitted, gamma).expected;
  }
  return {betas / tokens, tokens / steps};
}

bool covers(const std::optional<Interval>& interval, double truth) {
  return interval && interval->lo <= truth && truth <= interval->hi;
}

/// The 2.5% and 97.5% quantiles of the ratio over resampled sequences.
Interval percentile_bootstrap(Random& random, const std::vector<double>& a, const std::vector<double>& b) {
  constexpr int resamples = 499;
  std::vector<double> ratios(resamples);
  for (double& ratio : ratios) {
    double numerator = 0;
    double denominator = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const std::size_t i = random.below(a.size());
      numerator += a[i];
      denominator += b[i];
    }
    ratio = numerator / denominator;
  }
  std::sort(ratios.begin(), ratios.end());
  return {ratios[12], ratios[486]};
}

struct Tally {
  std::int64_t traces = 0, with_interval = 0, steps_with_interval = 0, enough_rejections = 0, steps_enough = 0;
  std::int64_t alpha = 0, alpha_enough = 0, emitted = 0, tokens_per_step = 0, tokens_enough = 0, bootstrap = 0;

  void add(const Tally& other) {
    traces += other.traces;
    with_interval += other.with_interval;
    steps_with_interval += other.steps_with_interval;
    enough_rejections += other.enough_rejections;
    steps_enough += other.steps_enough;
    alpha += other.alpha;
    alpha_enough += other.alpha_enough;
    emitted += other.emitted;
    tokens_per_step += other.tokens_per_step;
    tokens_enough += other.tokens_enough;
    bootstrap += other.bootstrap;
  }
};

/// The product's estimates of one recording.
class Estimates {
 public:
  Estimates(TaskMix mix, std::int64_t gamma) : gamma_(gamma), rates_(mix), replay_(replay_options(mix, gamma)) {}

  void add(const Sequence& sequence, std::size_t number) {
    const std::vector<std::int64_t> numbers(sequence.betas.size(), static_cast<std::int64_t>(number));
    const std::vector<std::int32_t> tasks(sequence.betas.size(), sequence.task);
    estimate::Observations observations;
    observations.size = static_cast<std::int64_t>(numbers.size());
    observations.sequence = numbers;
    observations.task = tasks;
    observations.mean_acceptance.lower = sequence.betas;
    observations.acceptance.lower = sequence.emitted;
    rates_.add(observations);
    replay_.add({sequence.emitted, numbers, tasks});
  }
  const estimate::AcceptanceAccumulator& rates() const { return rates_; }
  std::optional<Interval> tokens_per_step() {
    replay_.finish();
    return replay_.report().gammas[static_cast<std::size_t>(gamma_)].tokens_per_step.ci95;
  }

 private:
  static estimate::ReplayEstimateOptions replay_options(TaskMix mix, std::int64_t gamma) {
    estimate::ReplayEstimateOptions options;
    options.replay.max_gamma = gamma;
    options.mix = mix;
    options.resamplings = 1;
    return options;
  }

  std::int64_t gamma_;
  estimate::AcceptanceAccumulator rates_;
  estimate::ReplayEstimates replay_;
};

Tally run(const Law& law, const Truth& truth, std::size_t sequences, std::int64_t gamma, Random& random) {
  Estimates estimates(law.mix, gamma);
  std::vector<double> tokens;
  std::vector<double> betas;
  for (std::size_t k = 0; k < sequences; ++k) {
    const Sequence sequence = law.draw(random, k);
    estimates.add(sequence, k);
    tokens.push_back(static_cast<double>(sequence.betas.size()));
    betas.push_back(std::accumulate(sequence.betas.begin(), sequence.betas.end(), 0.0));
  }
  const AcceptanceEstimate alpha = *estimates.rates().from_mean_acceptance();
  Tally tally;
  tally.traces = 1;
  tally.with_interval = alpha.ci95.has_value();
  tally.enough_rejections = alpha.rejections >= estimate::few_rejections;
  tally.alpha = covers(alpha.ci95, truth.alpha);
  tally.alpha_enough = tally.enough_rejections && tally.alpha;
  tally.emitted = covers(estimates.rates().from_emitted()->ci95, truth.alpha);
  const std::optional<Interval> tokens_per_step = estimates.tokens_per_step();
  tally.steps_with_interval = tokens_per_step.has_value();
  tally.tokens_per_step = covers(tokens_per_step, truth.tokens_per_step);
  tally.steps_enough = tally.enough_rejections != 0 && tokens_per_step;
  tally.tokens_enough = tally.enough_rejections && tally.tokens_per_step;
  tally.bootstrap = sequences > 1 && covers(percentile_bootstrap(random, betas, tokens), truth.alpha);
  return tally;
}

Tally run_many(const Law& law, const Truth& truth, std::size_t sequences, std::int64_t gamma, std::int64_t runs,
               std::int64_t threads) {
  std::vector<Tally> tallies(static_cast<std::size_t>(threads));
  std::vector<std::jthread> workers;
  for (std::int64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      for (std::int64_t n = i; n < runs; n += threads) {
        Random random(static_cast<std::uint64_t>(n) * 1000 + sequences);
        tallies[static_cast<std::size_t>(i)].add(run(law, truth, sequences, gamma, random));
      }
    });
  }
  workers.clear();
  Tally all;
  for (const Tally& tally : tallies) all.add(tally);
  return all;
}

std::string share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t runs = 3000;
  std::int64_t gamma = 4;
  std::int64_t threads = 1;
  std::int64_t truth_sequences = 400'000;
  std::vector<std::size_t> sizes{1, 2, 4, 8, 16, 32, 100};
  CLI::App app("Coverage of the 95% intervals on synthetic recordings of known laws");
  app.add_option("--runs", runs, "recordings of each law and size")->capture_default_str();
  app.add_option("--gamma", gamma)->capture_default_str();
  app.add_option("--threads", threads)->capture_default_str();
  app.add_option("--truth", truth_sequences, "sequences that the true values are computed from")->capture_default_str();
  app.add_option("--sequences", sizes, "numbers of sequences")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  fmt::print(
      "| law | sequences | alpha | from emitted tokens | tokens per step | 20 rejections in | alpha | "
      "tokens per step | bootstrap |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Law& law : laws) {
    const Truth truth = truth_of(law, gamma, truth_sequences);
    for (const std::size_t sequences : sizes) {
      const Tally tally = run_many(law, truth, sequences, gamma, runs, threads);
      const std::int64_t resampled = sequences > 1 ? tally.traces : 0;
      fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", law.name, sequences,
                 share(tally.alpha, tally.with_interval), share(tally.emitted, tally.with_interval),
                 share(tally.tokens_per_step, tally.steps_with_interval), share(tally.enough_rejections, tally.traces),
                 share(tally.alpha_enough, tally.enough_rejections), share(tally.tokens_enough, tally.steps_enough),
                 share(tally.bootstrap, resampled));
      std::fflush(stdout);
    }
    fmt::print(stderr, "{}: alpha {:.5f}, tokens per step {:.5f}\n", law.name, truth.alpha, truth.tokens_per_step);
  }
}
