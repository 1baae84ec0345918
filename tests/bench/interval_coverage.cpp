// How often do the 95% intervals hold the truth, and how often where nothing warns? Synthetic recordings of known laws,
// drawn directly: the acceptance rate from betas and from emitted tokens, tokens per step and speedups by exact replay,
// and the percentile bootstrap over clusters as a contrast. docs/validation.md states the table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/theory/streaming_replay.hpp"

using namespace specdec;
using estimate::AcceptanceEstimate;
using estimate::Interval;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  double uniform() { return std::uniform_real_distribution<>()(generator_); }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(generator_); }
  bool chance(double probability) { return uniform() < probability; }
  double normal() { return normal_(generator_); }
  std::int64_t geometric(double probability) {
    return std::geometric_distribution<std::int64_t>(probability)(generator_);
  }

 private:
  std::mt19937_64 generator_;
  std::normal_distribution<> normal_;
};

struct Sequence {
  std::int32_t task = 0;
  std::int64_t prompt = traces::no_prompt;
  std::vector<double> betas;
  std::vector<double> emitted;  // a_t, with mean beta_t at every prefix
};

using Recording = std::vector<Sequence>;

/// A law of recordings of so many sequences.
struct Law {
  std::string name;
  std::function<Recording(Random&, std::size_t sequences)> draw;
};

/// Independent sequences; `number` is a sequence's place in its recording, for mixes fixed by design.
std::function<Recording(Random&, std::size_t)> each(std::function<Sequence(Random&, std::size_t number)> draw) {
  return [draw = std::move(draw)](Random& random, std::size_t sequences) {
    Recording recording;
    for (std::size_t k = 0; k < sequences; ++k) recording.push_back(draw(random, k));
    return recording;
  };
}

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

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

std::size_t lognormal_length(Random& random) {
  return static_cast<std::size_t>(std::clamp(std::exp(4.6 + random.normal()), 8.0, 1500.0));
}

/// A text whose betas scatter around one level.
Sequence around(Random& random, std::size_t length, double logit, double scatter) {
  Sequence sequence;
  for (std::size_t t = 0; t < length; ++t) append(sequence, random, logistic(logit + scatter * random.normal()));
  return sequence;
}

/// Pareto's lengths (index 1.3, at most 1500): the longer a text, the higher its acceptance.
Sequence heavy_tails(Random& random, std::size_t) {
  const double pareto = std::pow(1 - random.uniform(), -1 / 1.3) - 1;
  const double length = std::min(1500.0, 20 + std::floor(20 * pareto));
  const double logit = 0.9 + 0.8 * random.normal() + 0.35 * (std::log(length) - 4);
  return around(random, static_cast<std::size_t>(length), logit, 1.2);
}

Sequence lognormal_texts(Random& random, std::size_t) {
  const std::size_t n = lognormal_length(random);
  return around(random, n, 1 + 0.7 * random.normal(), 1.2);
}

/// Acceptance falls along the text, so that long ones have less.
Sequence falling(Random& random, std::size_t) {
  Sequence sequence;
  const std::size_t n = lognormal_length(random);
  for (std::size_t t = 0; t < n; ++t) {
    const double level = 0.35 + 0.6 * std::exp(-static_cast<double>(t) / 120);
    append(sequence, random, std::clamp(level + 0.12 * random.normal(), 0.0, 1.0));
  }
  return sequence;
}

/// Five texts of each prompt, most of whose scatter is the prompt's.
Recording five_of_a_prompt(Random& random, std::size_t sequences) {
  Recording recording;
  for (std::size_t k = 0; k < sequences;) {
    const double of_prompt = 0.9 + 0.8 * random.normal();
    const auto prompt = static_cast<std::int64_t>(k / 5);
    for (std::size_t i = 0; i < 5 && k < sequences; ++i, ++k) {
      const std::size_t n = length(random, 50, 249);
      recording.push_back(around(random, n, of_prompt + 0.4 * random.normal(), 1));
      recording.back().prompt = prompt;
    }
  }
  return recording;
}

/// The logit wanders over some thirty positions.
Sequence wandering(Random& random, std::size_t) {
  Sequence sequence;
  const std::size_t n = lognormal_length(random);
  double x = random.normal();
  for (std::size_t t = 0; t < n; ++t) {
    append(sequence, random, logistic(1 + 1.5 * x));
    x = 0.97 * x + std::sqrt(1 - 0.97 * 0.97) * random.normal();
  }
  return sequence;
}

/// A text in ten falls into repetition and runs to the limit of 1024 tokens with acceptance .99.
Sequence loops(Random& random, std::size_t) {
  const auto n = static_cast<std::size_t>(std::min<std::int64_t>(1 + random.geometric(1.0 / 120), 1024));
  Sequence sequence = around(random, n, 0.8 + 0.5 * random.normal(), 1);
  if (!random.chance(0.1)) return sequence;
  while (sequence.betas.size() < 1024) append(sequence, random, 0.99);
  return sequence;
}

/// One to sixteen texts of a prompt (geometric, mean 4), whose lengths and acceptance go with the prompt.
Recording unequal_prompts(Random& random, std::size_t sequences) {
  Recording recording;
  for (std::int64_t prompt = 0; recording.size() < sequences; ++prompt) {
    const auto texts = static_cast<std::size_t>(std::min<std::int64_t>(1 + random.geometric(0.25), 16));
    const double effect = random.normal();
    const double log_length = 4.3 + 0.5 * random.normal() + 0.2 * effect;
    // The last prompt keeps its texts, so that the number of texts of a prompt does not depend on where the recording
    // ends.
    for (std::size_t i = 0; i < texts; ++i) {
      const double length = std::clamp(std::exp(log_length + 0.3 * random.normal()), 8.0, 1000.0);
      recording.push_back(
          around(random, static_cast<std::size_t>(length), 0.8 + 0.7 * effect + 0.3 * random.normal(), 1));
      recording.back().prompt = prompt;
    }
  }
  return recording;
}

/// One text in eight is long and hard, the others short and easy.
Sequence rare_long(Random& random, std::size_t) {
  const bool hard = random.chance(1.0 / 8);
  const std::size_t n = hard ? length(random, 300, 899) : length(random, 20, 119);
  return around(random, n, (hard ? -0.2 : 1.6) + 0.3 * random.normal(), 1);
}

/// Each text is easy (.9) or hopeless (.25), of any length.
Sequence easy_or_hopeless(Random& random, std::size_t) {
  Sequence sequence;
  const std::size_t n = lognormal_length(random);
  const double level = random.chance(0.7) ? 0.9 : 0.25;
  for (std::size_t t = 0; t < n; ++t) append(sequence, random, std::clamp(level + 0.05 * random.normal(), 0.0, 1.0));
  return sequence;
}

/// One text in twenty is hopeless (.05), the others easy (.9), all of one length.
Sequence rare_hopeless(Random& random, std::size_t) {
  Sequence sequence;
  const double level = random.chance(0.05) ? 0.05 : 0.9;
  for (int t = 0; t < 200; ++t) append(sequence, random, std::clamp(level + 0.03 * random.normal(), 0.0, 1.0));
  return sequence;
}

const std::vector<Law> laws{
    {"independent betas", each(independent)},
    {"sticky Markov betas", each(sticky)},
    {"two tasks, random mix", each(random_mixture)},
    {"two tasks, fixed mix", each(fixed_mixture)},
    {"temperature 0, alpha .98", each([](Random& r, std::size_t) { return greedy(r, 0.02, 0.02); })},
    {"temperature 0, alpha .98, in bursts", each([](Random& r, std::size_t) { return greedy(r, 0.0102, 0.5); })},
    {"temperature 0, alpha .995", each([](Random& r, std::size_t) { return greedy(r, 0.005, 0.005); })},
    {"temperature 0, alpha .995, in bursts", each([](Random& r, std::size_t) { return greedy(r, 0.0025, 0.5); })},
    {"heavy tails", each(heavy_tails)},
    {"lognormal lengths", each(lognormal_texts)},
    {"falling along the text", each(falling)},
    {"five texts of a prompt", five_of_a_prompt},
    {"wandering", each(wandering)},
    {"loops", each(loops)},
    {"unequal prompts", unequal_prompts},
    {"rare long and hard", each(rare_long)},
    {"easy or hopeless", each(easy_or_hopeless)},
    {"rare and hopeless", each(rare_hopeless)},
};

/// Gammas up to this one are priced.
constexpr std::int64_t max_gamma = 8;
/// At which tokens per step and speedup are looked at.
constexpr std::int64_t shown_gamma = 4;
constexpr double c = 0.1;

core::StepCost step_cost() {
  core::StepCost cost;
  cost.c = c;
  return cost;
}

struct Truth {
  double alpha = 0, tokens_per_step = 0;
  std::vector<double> speedup;  // by gamma
};

Truth truth_of(const Law& law, std::size_t sequences) {
  Random random(12345);
  double betas = 0;
  theory::ReplayOptions options;
  options.max_gamma = max_gamma;
  theory::StreamingReplay replay(options);
  theory::ReplayedTotal sum(max_gamma);
  constexpr std::size_t portion = 1000;
  for (std::size_t k = 0; k < sequences; k += portion) {
    for (const Sequence& sequence : law.draw(random, portion)) {
      betas += std::accumulate(sequence.betas.begin(), sequence.betas.end(), 0.0);
      replay.add(sequence.emitted);
      sum += replay.finish_sequence();
    }
  }
  const theory::ReplayedRounds total = sum.value();
  const auto tokens = static_cast<double>(total.tokens());
  Truth truth{betas / tokens, tokens / total.steps(shown_gamma), {}};
  for (std::int64_t g = 0; g <= max_gamma; ++g) truth.speedup.push_back(tokens / total.cost(g, step_cost()));
  return truth;
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

/// Counts of recordings: all, those with intervals, and those whose intervals hold the truth.
struct Tally {
  std::int64_t recordings = 0, with_interval = 0;
  std::int64_t alpha = 0, emitted = 0, tokens_per_step = 0, speedup = 0, best = 0, bootstrap = 0;

  void add(const Tally& other) {
    recordings += other.recordings;
    with_interval += other.with_interval;
    alpha += other.alpha;
    emitted += other.emitted;
    tokens_per_step += other.tokens_per_step;
    speedup += other.speedup;
    best += other.best;
    bootstrap += other.bootstrap;
  }
};

struct Tallies {
  Tally all, not_warned;
  std::int64_t few = 0, length_dependence = 0;

  void add(const Tallies& other) {
    all.add(other.all);
    not_warned.add(other.not_warned);
    few += other.few;
    length_dependence += other.length_dependence;
  }
};

/// The product's estimates of one recording.
class Estimates {
 public:
  Estimates() : replay_(replay_options()) {}

  void add(const Sequence& sequence, std::size_t number) {
    const std::vector<std::int64_t> numbers(sequence.betas.size(), static_cast<std::int64_t>(number));
    const std::vector<std::int32_t> tasks(sequence.betas.size(), sequence.task);
    const std::vector<std::int64_t> prompts(sequence.betas.size(), sequence.prompt);
    estimate::Observations observations;
    observations.size = static_cast<std::int64_t>(numbers.size());
    observations.sequence = numbers;
    observations.task = tasks;
    observations.prompt = prompts;
    observations.mean_acceptance.lower = sequence.betas;
    observations.acceptance.lower = sequence.emitted;
    rates_.add(observations);
    replay_.add({sequence.emitted, observations.labels()});
  }
  const estimate::AcceptanceAccumulator& rates() const { return rates_; }
  estimate::ReplayReport replay() {
    replay_.finish();
    return replay_.report();
  }

 private:
  static estimate::ReplayEstimateOptions replay_options() {
    estimate::ReplayEstimateOptions options;
    options.replay.max_gamma = max_gamma;
    options.cost = step_cost();
    return options;
  }

  estimate::AcceptanceAccumulator rates_;
  estimate::ReplayEstimates replay_;
};

/// Sums of betas and lengths by prompt, or by sequence where there are no prompts.
std::pair<std::vector<double>, std::vector<double>> sums_by_cluster(const Recording& recording) {
  std::map<std::int64_t, std::pair<double, double>> sums;
  for (std::size_t k = 0; k < recording.size(); ++k) {
    const Sequence& sequence = recording[k];
    auto& [betas, tokens] = sums[sequence.prompt == traces::no_prompt ? static_cast<std::int64_t>(k) : sequence.prompt];
    betas += std::accumulate(sequence.betas.begin(), sequence.betas.end(), 0.0);
    tokens += static_cast<double>(sequence.betas.size());
  }
  std::pair<std::vector<double>, std::vector<double>> columns;
  for (const auto& [cluster, sum] : sums) {
    columns.first.push_back(sum.first);
    columns.second.push_back(sum.second);
  }
  return columns;
}

Tallies run(const Law& law, const Truth& truth, std::size_t sequences, Random& random) {
  Estimates estimates;
  const Recording recording = law.draw(random, sequences);
  for (std::size_t k = 0; k < recording.size(); ++k) estimates.add(recording[k], k);
  const AcceptanceEstimate alpha = *estimates.rates().from_mean_acceptance();
  const estimate::ReplayReport replay = estimates.replay();
  const estimate::GammaReplay& row = replay.gammas[static_cast<std::size_t>(shown_gamma)];
  const auto best = static_cast<std::size_t>(replay.optimum->gamma);
  Tallies tallies;
  Tally& tally = tallies.all;
  tally.recordings = 1;
  tally.with_interval = alpha.ci95 && row.tokens_per_step.ci95;
  tally.alpha = covers(alpha.ci95, truth.alpha);
  tally.emitted = covers(estimates.rates().from_emitted()->ci95, truth.alpha);
  tally.tokens_per_step = covers(row.tokens_per_step.ci95, truth.tokens_per_step);
  tally.speedup = covers(row.speedup->ci95, truth.speedup[static_cast<std::size_t>(shown_gamma)]);
  tally.best = covers(replay.gammas[best].speedup->ci95, truth.speedup[best]);
  const auto [betas, tokens] = sums_by_cluster(recording);
  tally.bootstrap = betas.size() > 1 && covers(percentile_bootstrap(random, betas, tokens), truth.alpha);
  tallies.few = alpha.few_clusters() || !alpha.notes.empty();
  tallies.length_dependence = alpha.length_dependence && alpha.length_dependence->significant();
  if (tallies.few == 0 && tallies.length_dependence == 0) tallies.not_warned = tally;
  return tallies;
}

Tallies run_many(const Law& law, const Truth& truth, std::size_t sequences, std::int64_t runs, std::int64_t threads) {
  std::vector<Tallies> tallies(static_cast<std::size_t>(threads));
  std::vector<std::jthread> workers;
  for (std::int64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      for (std::int64_t n = i; n < runs; n += threads) {
        Random random(static_cast<std::uint64_t>(n) * 1000 + sequences);
        tallies[static_cast<std::size_t>(i)].add(run(law, truth, sequences, random));
      }
    });
  }
  workers.clear();
  Tallies all;
  for (const Tallies& tally : tallies) all.add(tally);
  return all;
}

std::string share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t runs = 3000;
  std::int64_t threads = 1;
  std::size_t truth_sequences = 400'000;
  std::vector<std::size_t> sizes{8, 16, 32, 60, 120};
  std::vector<std::string> names;
  for (const Law& law : laws) names.push_back(law.name);
  CLI::App app("Coverage of the 95% intervals on synthetic recordings of known laws");
  app.add_option("--runs", runs, "recordings of each law and size")->capture_default_str();
  app.add_option("--threads", threads)->capture_default_str();
  app.add_option("--truth", truth_sequences, "sequences that the true values are computed from")->capture_default_str();
  app.add_option("--sequences", sizes, "numbers of sequences")->capture_default_str();
  app.add_option("--laws", names, "some of them")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);

  fmt::print(
      "| law | sequences | alpha | from emitted tokens | tokens per step | speedup | of the best gamma | few or "
      "unequal | "
      "length dependence | no warning | alpha | tokens per step | speedup | of the best gamma | bootstrap |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Law& law : laws) {
    if (std::find(names.begin(), names.end(), law.name) == names.end()) continue;
    const Truth truth = truth_of(law, truth_sequences);
    for (const std::size_t sequences : sizes) {
      const Tallies tallies = run_many(law, truth, sequences, runs, threads);
      const Tally& all = tallies.all;
      const Tally& quiet = tallies.not_warned;
      // Shares of fewer recordings than one in fifty say little.
      const std::int64_t enough = quiet.recordings * 50 >= all.recordings ? quiet.recordings : 0;
      fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", law.name, sequences,
                 share(all.alpha, all.with_interval), share(all.emitted, all.with_interval),
                 share(all.tokens_per_step, all.with_interval), share(all.speedup, all.with_interval),
                 share(all.best, all.with_interval), share(tallies.few, runs), share(tallies.length_dependence, runs),
                 share(quiet.recordings, runs), share(quiet.alpha, enough), share(quiet.tokens_per_step, enough),
                 share(quiet.speedup, enough), share(quiet.best, enough), share(all.bootstrap, runs));
      std::fflush(stdout);
    }
    fmt::print(stderr, "{}: alpha {:.5f}, tokens per step {:.5f}, speedup {:.5f}\n", law.name, truth.alpha,
               truth.tokens_per_step, truth.speedup[static_cast<std::size_t>(shown_gamma)]);
  }
}
