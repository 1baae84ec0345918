#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/shipped_models.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "render/figures/validation_charts.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/validate.hpp"

namespace specdec::cli {

using namespace render;
namespace {

struct MonteCarloFigureOptions {
  std::int64_t rounds = 100'000;
  std::int64_t tokens = 384;
  std::int64_t seed = 1;
  std::int64_t threads = 1;
};

/// Tasks whose prompts are decoded, so that all texts are of one kind.
constexpr const char* figure_task = "prose";
constexpr std::int64_t figure_text_length = 64;

Chart monte_carlo_from(const MonteCarloFigureOptions& o) {
  MonteCarloChartInputs inputs;
  validation::TokensCheckOptions fixed;
  fixed.rounds = o.rounds;
  fixed.seed = static_cast<std::uint64_t>(o.seed);
  fixed.threads = o.threads;
  inputs.checks = validation::check_tokens_per_step(fixed);
  inputs.pair = "shipped pair";
  std::vector<Assumption> assumptions;
  std::vector<nlohmann::ordered_json> files;
  if (o.tokens > 0) {
    const planner::CheckpointPair pair({}, shipped_models());
    validation::Options run;
    run.temperatures = {1};
    run.gammas = {1, 2, 4, 8};
    run.tokens = o.tokens;
    run.max_new_tokens = figure_text_length;
    run.timed_prompts = 0;
    run.seed = static_cast<std::uint64_t>(o.seed);
    run.threads = o.threads;
    const auto prompts = pair.prompts({figure_task}, pair.longest_prompt(run.max_new_tokens));
    inputs.runs = validation::validate(pair.models(), prompts.kept, run).configurations;
    assumptions = pair.assumptions();
    files = facts_of(pair.files());
  }
  Chart chart = theory_against_simulation_chart(inputs);
  chart.assumptions = std::move(assumptions);
  chart.assumptions.push_back({"rounds of fixed laws, each", o.rounds, o.rounds == 100'000 ? "default" : "user"});
  chart.assumptions.push_back({"tokens of the pair, each", o.tokens, o.tokens == 384 ? "default" : "user"});
  chart.files = std::move(files);
  return chart;
}

std::function<Chart()> set_up_monte_carlo(Options& options) {
  const auto chosen = std::make_shared<MonteCarloFigureOptions>();
  chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  options.integer("--rounds", chosen->rounds, {1024, 1'000'000'000}, "rounds of fixed laws for each rate and gamma");
  options.integer("--tokens", chosen->tokens, {0, 1'000'000'000}, "tokens of the shipped pair for each gamma; 0: none");
  options.integer("--seed", chosen->seed, {}, "seed of all random numbers");
  options.integer("--threads", chosen->threads, {1, 1024}, "threads; results do not depend on them");
  return [chosen] { return monte_carlo_from(*chosen); };
}

struct DistributionFigureOptions {
  std::string pair = "synthetic";
  std::int64_t gamma = 4;
  std::int64_t tokens = 20'000;
  std::int64_t seed = 1;
  std::int64_t threads = 1;
};

/// Tokens of a pair's vocabulary and the error of its draft in logits, which give an acceptance of about two thirds.
constexpr std::int64_t synthetic_vocab = 64;
constexpr double synthetic_noise = 1;

Chart distribution_from(const DistributionFigureOptions& o) {
  DistributionChartInputs inputs;
  std::vector<Assumption> assumptions;
  std::vector<nlohmann::ordered_json> files;
  sim::ModelPair models;
  std::vector<sim::Prompt> prompts;
  sim::DecodingOptions decoding;
  decoding.gamma = o.gamma;
  decoding.max_new_tokens = figure_text_length;
  std::optional<planner::CheckpointPair> shipped;
  if (o.pair == "shipped") {
    shipped.emplace(planner::CheckpointPair::Paths{}, shipped_models());
    models = shipped->models();
    prompts = shipped->prompts({figure_task}, shipped->longest_prompt(decoding.max_new_tokens)).kept;
    assumptions = shipped->assumptions();
    files = facts_of(shipped->files());
    inputs.pair = "The shipped pair";
  } else {
    const sim::TablePair pair =
        sim::synthetic_bigram_pair(synthetic_vocab, synthetic_noise, static_cast<std::uint64_t>(o.seed));
    models.target = [pair](std::int64_t) { return sim::OwnedModel(pair.target); };
    models.draft = [pair](std::int64_t) { return sim::OwnedModel(pair.draft); };
    prompts = {{"", {0}}};
    inputs.pair = fmt::format("A random bigram pair of {} tokens", synthetic_vocab);
  }
  for (const bool right : {true, false}) {
    decoding.verifier = right ? sim::Verifier(sim::verify_tokens) : validation::verify_without_subtracting;
    inputs.samplers.push_back({right ? "Algorithm 1" : "wrong: corrected from p",
                               validation::sample_transforms(models, prompts, decoding, o.tokens,
                                                             static_cast<std::uint64_t>(o.seed), o.threads)});
  }
  inputs.level = validation::run_level;
  Chart chart = distribution_test_chart(std::move(inputs));
  chart.assumptions = std::move(assumptions);
  chart.assumptions.push_back({"pair", o.pair, o.pair == "synthetic" ? "default" : "user"});
  chart.files = std::move(files);
  return chart;
}

std::function<Chart()> set_up_distribution(Options& options) {
  const auto chosen = std::make_shared<DistributionFigureOptions>();
  chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  options.choice("--pair", chosen->pair, {"synthetic", "shipped"},
                 "random tables, or the shipped transformers, of which\n1000 tokens take a second");
  options.integer("-k,--gamma,--num-speculative-tokens", chosen->gamma, {1, 32}, "drafted tokens per step");
  options.integer("--tokens", chosen->tokens, {100, 100'000'000}, "tokens of each sampler");
  options.integer("--seed", chosen->seed, {}, "seed of all random numbers");
  options.integer("--threads", chosen->threads, {1, 1024}, "threads; results do not depend on them");
  return [chosen] { return distribution_from(*chosen); };
}

}  // namespace

std::vector<FigureKind> validation_figures() {
  return {{"theory-against-simulation", "tokens per step by closed form and by simulation, with error bars",
           set_up_monte_carlo},
          {"distribution-test", "the distribution test on a right sampler and on a wrong one", set_up_distribution}};
}

}  // namespace specdec::cli
