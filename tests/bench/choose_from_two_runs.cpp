// What does it lose to choose gamma from a plain run and one with drafts, where the two leave the fixed part of a round
// and the part of a draft open? Servers of made-up families close to those of the priors, and servers that stray from
// them; docs/validation.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/core/quantile.hpp"
#include "analysis/cost/fitted_cost.hpp"

using namespace specdec;
using Random = std::mt19937_64;

namespace {

constexpr std::int64_t most_gamma = 8;
constexpr std::size_t worlds = 1000;
constexpr double run_noise = 0.025, length_noise = 0.01;

struct Family {
  std::string name;
  cost::DraftKind kind;
  bool experts;
  /// Of the fixed part, normal, and of the part of a draft, log-normal, in plain steps.
  double fixed, fixed_spread, draft, draft_spread;
};

const std::vector<Family> families = {{"eagle, vLLM", cost::DraftKind::eagle, false, 0.05, 0.04, 0.09, 0.22},
                                      {"mtp, llama.cpp", cost::DraftKind::mtp, false, 0.0, 0.03, 0.265, 0.06},
                                      {"eagle, mixture", cost::DraftKind::eagle, true, 0.47, 0.12, 0.085, 0.4},
                                      {"eagle, dense", cost::DraftKind::eagle, false, 0.13, 0.03, 0.056, 0.25},
                                      {"small model", cost::DraftKind::model, false, 0.05, 0.05, 0.44, 0.15}};

double normal(Random& random, double mean, double deviation) {
  return std::normal_distribution<double>(mean, deviation)(random);
}

/// Tokens per step of gamma 0 to most_gamma, where draft j is accepted with first ratio^(j - 1).
std::vector<double> tokens_of(double first, double ratio) {
  std::vector<double> tokens = {1};
  double rate = first, survival = 1;
  for (std::int64_t gamma = 1; gamma <= most_gamma; ++gamma) {
    survival *= std::clamp(rate, 0.0, 1.0);
    tokens.push_back(tokens.back() + survival);
    rate *= ratio;
  }
  return tokens;
}

/// As above, so that gamma makes so many tokens per step.
std::vector<double> tokens_through(std::size_t gamma, double tokens, double ratio) {
  double lo = 0, hi = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (lo + hi) / 2;
    (tokens_of(middle, ratio)[gamma] < tokens ? lo : hi) = middle;
  }
  return tokens_of(hi, ratio);
}

/// Rounds in plain steps, by gamma.
std::vector<double> rounds_of(double fixed, double draft) {
  std::vector<double> rounds = {1};
  for (std::int64_t gamma = 1; gamma <= most_gamma; ++gamma)
    rounds.push_back(std::max(0.3, 1 + fixed + draft * static_cast<double>(gamma)));
  return rounds;
}

/// [gamma][world]
using Table = std::vector<std::vector<double>>;

std::size_t least_regret(const Table& tokens, const Table& rounds) {
  std::vector<double> regrets(tokens.size(), 0.0);
  for (std::size_t world = 0; world < worlds; ++world) {
    const auto speed = [&](std::size_t gamma) { return tokens[gamma][world] / rounds[gamma][world]; };
    double best = 0;
    for (std::size_t gamma = 0; gamma < tokens.size(); ++gamma) best = std::max(best, speed(gamma));
    for (std::size_t gamma = 0; gamma < tokens.size(); ++gamma) regrets[gamma] += 1 - speed(gamma) / best;
  }
  return static_cast<std::size_t>(std::min_element(regrets.begin(), regrets.end()) - regrets.begin());
}

Table same_in_all(const std::vector<double>& values) {
  Table table;
  for (const double value : values) table.emplace_back(worlds, value);
  return table;
}

Table rounds_by_fit(std::size_t gamma, double round, const cost::FitOptions& options) {
  const cost::FittedCost cost(
      std::vector<cost::ObservedRound>{{.gamma = 0, .seconds = 0.01},
                                       {.gamma = static_cast<double>(gamma), .seconds = 0.01 * round}},
      options);
  Table table;
  for (std::int64_t g = 0; g <= most_gamma; ++g) {
    table.emplace_back(worlds);
    cost.totals_of_replicates({.gamma = g}, table.back());
  }
  return table;
}

/// Regrets by rule and family.
using Lost = std::map<std::string, std::map<std::string, std::vector<double>>>;

/// What rules make of a plain run and one gamma of a server.
void add(const Family& family, const std::vector<double>& rounds, Random& random, Lost& lost) {
  const std::vector<double> tokens =
      tokens_of(std::uniform_real_distribution<double>(0.5, 0.9)(random), normal(random, 0.97, 0.025));
  constexpr std::array<std::size_t, 4> gammas = {1, 2, 3, 5};
  const std::size_t ran = gammas[std::uniform_int_distribution<std::size_t>(0, 3)(random)];
  const auto drafts = static_cast<double>(ran);
  const double round = rounds[ran] * std::exp(normal(random, 0, run_noise));
  const double length = std::clamp(tokens[ran] * std::exp(normal(random, 0, length_noise)), 1.001, drafts + 0.999);
  Table drawn(most_gamma + 1, std::vector<double>(worlds));
  std::vector<double> mean(most_gamma + 1, 0.0);
  for (std::size_t world = 0; world < worlds; ++world) {
    const std::vector<double> its = tokens_through(ran, length, normal(random, 0.97, 0.025));
    for (std::size_t gamma = 0; gamma < its.size(); ++gamma) {
      drawn[gamma][world] = its[gamma];
      mean[gamma] += its[gamma] / worlds;
    }
  }
  const auto speed = [&](std::size_t gamma) { return tokens[gamma] / rounds[gamma]; };
  double best = 0;
  for (std::size_t gamma = 0; gamma < rounds.size(); ++gamma) best = std::max(best, speed(gamma));
  const auto take = [&](const std::string& rule, std::size_t chosen) {
    lost[rule][family.name].push_back(1 - speed(chosen) / best);
  };
  const auto by_fit = [&](const std::vector<cost::RoundPrior>& priors) {
    const cost::FitOptions options{.kind = family.kind, .priors = priors, .replicates = worlds};
    return least_regret(drawn, rounds_by_fit(ran, round, options));
  };
  const auto by_rounds = [&](const Table& tokens_by, const std::vector<double>& its) {
    return least_regret(tokens_by, same_in_all(its));
  };
  take("1 one prior", by_fit({{1, {0.135, 0.65}, {0.073, 0.7}}}));
  take("2 mixture of all kinds", by_fit(cost::usual_rounds(std::nullopt)));
  take("3 kind known", by_fit(cost::usual_rounds(family.kind)));
  take("4 kind and experts known", by_fit(cost::usual_rounds(family.kind, family.experts)));
  take("5 straight line", by_rounds(same_in_all(mean), rounds_of(0, (round - 1) / drafts)));
  take("6 faster of the two", tokens[ran] > round ? ran : 0);
  take("7 cost known", by_rounds(drawn, rounds));
}

void print(const Lost& lost) {
  fmt::print("\n| chosen by | mean regret | 95% |");
  for (const Family& family : families) fmt::print(" {} |", family.name);
  fmt::print("\n|---|---|---|---|---|---|---|---|\n");
  const auto mean = [](const std::vector<double>& values) {
    return 100 * std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  for (const auto& [rule, by_family] : lost) {
    std::vector<double> all;
    for (const auto& one : by_family) all.insert(all.end(), one.second.begin(), one.second.end());
    fmt::print("| {} | {:.2f}% | {:.1f}% |", rule.substr(2), mean(all), 100 * core::quantile(all, 0.95));
    for (const Family& family : families) fmt::print(" {:.2f}% |", mean(by_family.at(family.name)));
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  int draws = 60;
  CLI::App app("What choices from a plain run and one gamma lose");
  app.add_option("--draws", draws, "servers of each family")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  for (const bool fresh : {false, true}) {
    Random random(3);
    Lost lost;
    for (const Family& family : families) {
      for (int draw = 0; draw < draws; ++draw) {
        double fixed = normal(random, family.fixed, family.fixed_spread);
        double draft = family.draft * std::exp(normal(random, 0, family.draft_spread));
        if (fresh) {
          fixed += normal(random, 0, 0.12);
          draft *= std::exp(normal(random, 0, 0.4));
        }
        add(family, rounds_of(std::max(fixed, -0.25), draft), random, lost);
      }
    }
    fmt::print("\n{}:\n", fresh ? "families that nobody knows" : "families as known");
    print(lost);
  }
}
