// How often worlds of acceptance hold the truth, and what choosing by them loses.
//
//   build/bench/tests/bench/acceptance_worlds [--repetitions N] [--left-out FILE]
//
// First published curves: tokens per step at one gamma are revealed, and the rest of the curve tells what each choice
// loses. FILE holds a prior for each target that has not seen it (scripts/fit_acceptance_priors.py --left-out FILE);
// without it the priors that come with the program have. Then counts of simulated traffic, by laws that are populations
// of requests and laws that are not.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/estimate/request_population.hpp"
#include "analysis/planning/published_lengths.hpp"
#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"

namespace {

using namespace specdec;
using Values = std::vector<double>;

double quantile(Values values, double share) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

double mean(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// The gamma of least expected regret over worlds, from `first` on, at a cost per draft.
std::size_t least_regret(const estimate::TokenWorlds& worlds, double c, std::size_t first) {
  Values regret(worlds.tokens.size(), 0);
  for (std::size_t world = 0; world < worlds.worlds(); ++world) {
    double best = 0;
    const auto speedup = [&](std::size_t gamma) {
      return worlds.tokens[gamma][world] / (1 + c * static_cast<double>(gamma));
    };
    for (std::size_t gamma = first; gamma < regret.size(); ++gamma) best = std::max(best, speedup(gamma));
    for (std::size_t gamma = first; gamma < regret.size(); ++gamma) regret[gamma] += 1 - speedup(gamma) / best;
  }
  return static_cast<std::size_t>(std::min_element(regret.begin() + static_cast<std::ptrdiff_t>(first), regret.end()) -
                                  regret.begin());
}

/// The share of the best speedup that a gamma loses.
double loss(const Values& tokens, double c, std::size_t chosen, std::size_t first) {
  double best = 0;
  const auto speedup = [&](std::size_t gamma) { return tokens[gamma] / (1 + c * static_cast<double>(gamma)); };
  for (std::size_t gamma = first; gamma < tokens.size(); ++gamma) best = std::max(best, speedup(gamma));
  return 1 - speedup(chosen) / best;
}

/// Priors that have not seen a target, by target and method.
using LeftOut = std::map<std::pair<std::string, std::string>, estimate::PopulationPrior>;

LeftOut read_left_out(const std::string& file) {
  LeftOut priors;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string target, method;
    std::array<double, 3> deviation{}, correlation{};
    estimate::PopulationPrior prior;
    words >> target >> method;
    for (double& one : prior.mean) words >> one;
    for (double& one : deviation) words >> one;
    for (double& one : correlation) words >> one;
    words >> prior.cliff;
    const auto pair_of = [&](std::size_t i, std::size_t k) { return i == k ? 1 : correlation[i + k - 1]; };
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k) prior.covariance[i][k] = pair_of(i, k) * deviation[i] * deviation[k];
    priors[{target, method}] = prior;
  }
  return priors;
}

estimate::PopulationPrior prior_of(const planning::PublishedLength& curve, const LeftOut& left_out) {
  const bool parallel = curve.method != "eagle3" && curve.method != "mtp";
  const std::string method = parallel ? "parallel" : curve.method;
  const auto found = left_out.find({curve.target_model, method});
  if (found != left_out.end()) return found->second;
  return estimate::population_prior(parallel          ? cost::DraftKind::parallel
                                    : method == "mtp" ? cost::DraftKind::mtp
                                                      : cost::DraftKind::eagle);
}

/// [gamma] of a published curve, linear between its figures.
Values filled(const std::map<std::int64_t, double>& figures) {
  Values tokens = {1};
  std::int64_t before = 0;
  for (const auto& [gamma, value] : figures) {
    const double from = tokens.back();
    for (std::int64_t next = before + 1; next <= gamma; ++next) {
      tokens.push_back(from + (value - from) * static_cast<double>(next - before) / static_cast<double>(gamma - before));
    }
    before = gamma;
  }
  return tokens;
}

struct Tally {
  Values regret, constant_alpha, holds, width;

  void print(const std::string& what) const {
    fmt::print("{:24} {:4} decisions: regret mean {:.2f}%, 95th percentile {:.1f}%, worst {:.0f}%; constant alpha {:.2f}%, "
               "{:.1f}%; holds the longest {:.0f}%, width {:.0f}%\n",
               what, regret.size(), 100 * mean(regret), 100 * quantile(regret, 0.95), 100 * quantile(regret, 1),
               100 * mean(constant_alpha), 100 * quantile(constant_alpha, 0.95), 100 * mean(holds),
               100 * quantile(width, 0.5));
  }
};

void reveal(const planning::PublishedLength& curve, std::int64_t gamma, const LeftOut& left_out, Tally& tally) {
  const Values truth = filled(curve.tokens_per_step);
  const auto longest = static_cast<std::int64_t>(truth.size()) - 1;
  const double tokens = curve.tokens_per_step.at(gamma);
  const double rounding = 0.005 / std::sqrt(3) / tokens;
  const std::vector<estimate::LengthEvidence> told = {{gamma, tokens, rounding}};
  const estimate::TokenWorlds worlds =
      estimate::population_worlds(prior_of(curve, left_out), told, {}, longest, {});
  const core::AcceptanceRate alpha = theory::alpha_from_acceptance_length(tokens, gamma);
  estimate::TokenWorlds constant;
  constant.alternative = {0};
  for (std::int64_t next = 0; next <= longest; ++next) constant.tokens.push_back({theory::expected_tokens(alpha, next)});
  const Values& last = worlds.tokens.back();
  const double low = quantile(last, 0.025), high = quantile(last, 0.975), shown = 0.005;
  for (const double c : {0.02, 0.05, 0.1, 0.2}) {
    tally.regret.push_back(loss(truth, c, least_regret(worlds, c, 1), 1));
    tally.constant_alpha.push_back(loss(truth, c, least_regret(constant, c, 1), 1));
    tally.holds.push_back(low - shown <= truth.back() && truth.back() <= high + shown ? 1 : 0);
    tally.width.push_back((high - low) / truth.back());
  }
}

void published_curves(const LeftOut& left_out) {
  fmt::print("Published curves{}\n", left_out.empty() ? ", by priors that have seen them" : ", target left out");
  Tally middle, first;
  std::map<std::string, Tally> by_method;
  for (const planning::PublishedLength& curve : planning::published_lengths()) {
    if (curve.tokens_per_step.size() < 3) continue;
    for (const std::int64_t gamma : {3, 5}) {
      if (curve.tokens_per_step.count(gamma) == 0) continue;
      reveal(curve, gamma, left_out, middle);
      reveal(curve, gamma, left_out, by_method[curve.method]);
    }
    if (curve.tokens_per_step.count(1) > 0) reveal(curve, 1, left_out, first);
  }
  middle.print("from gamma 3 or 5");
  for (const auto& [method, tally] : by_method) tally.print("  " + method);
  first.print("from gamma 1");
}

constexpr std::size_t most_drafts = 8;
using Rates = std::array<double, most_drafts>;
using Random = std::mt19937_64;

double normal(Random& random) { return std::normal_distribution<double>()(random); }
double uniform(Random& random, double low = 0, double high = 1) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// A server's traffic.
struct Traffic {
  double mu = 0, sigma = 1, delta = 0;
};

/// A request: log-odds of each draft, in one regime or two of its text that last 20 tokens in the mean, and its tokens.
struct Request {
  std::vector<Rates> regimes;
  double tokens = 128;
  /// Drafts end where one is unlikely, by a noisy view of it.
  bool ends_early = false;
};

Rates falling(double log_odds, double delta) {
  Rates rates;
  for (std::size_t j = 0; j < most_drafts; ++j) rates[j] = log_odds - delta * static_cast<double>(j);
  return rates;
}

struct Law {
  std::string name;
  std::function<Request(const Traffic&, Random&)> request;
  std::size_t repeats = 1;
};

std::vector<Law> all_laws() {
  const auto base = [](const Traffic& t, Random& r) {
    return Request{{falling(t.mu + t.sigma * normal(r), t.delta)}};
  };
  const auto bimodal = [](const Traffic& t, Random& r) {
    const double middle = uniform(r) < 0.5 ? std::log(0.93 / 0.07) : std::log(0.4 / 0.6);
    return Request{{falling(middle + 0.2 * normal(r), t.delta)}};
  };
  const auto lengths = [base](const Traffic& t, Random& r) {
    Request request = base(t, r);
    request.tokens = std::clamp(std::exp(std::log(128) - 0.32 + 0.8 * normal(r)), 8.0, 600.0);
    return request;
  };
  const auto serial = [](const Traffic& t, Random& r) {
    const double a = t.mu + t.sigma / 2 * normal(r);
    return Request{{falling(a + 1.2, t.delta), falling(a - 1.2, t.delta)}};
  };
  const auto ends = [base](const Traffic& t, Random& r) {
    Request request = base(t, r);
    request.ends_early = true;
    return request;
  };
  const auto ratio = [](const Traffic& t, Random& r) {
    Rates rates;
    double rate = logistic(t.mu + t.sigma * normal(r));
    for (double& one : rates) one = std::log(rate / (1 - rate)), rate *= 0.9;
    return Request{{rates}};
  };
  const auto cliff = [base](const Traffic& t, Random& r) {
    Request request = base(t, r);
    for (std::size_t j = 3; j < most_drafts; ++j) request.regimes[0][j] -= 4;
    return request;
  };
  return {{"base", base},           {"bimodal", bimodal},        {"unequal lengths", lengths}, {"repeats x3", base, 3},
          {"serial", serial},       {"ends early", ends},        {"ratio .9", ratio},          {"cliff after 3", cliff}};
}

struct Counts {
  Values accepted = Values(most_drafts, 0);
  double rounds = 0;
};

std::size_t accepted_drafts(const Request& request, const Rates& log_odds, std::size_t gamma, Random& random) {
  for (std::size_t j = 0; j < gamma; ++j) {
    double its = log_odds[j];
    if (request.ends_early && logistic(its += normal(random)) < 0.5) return j;
    if (uniform(random) >= logistic(its)) return j;
  }
  return gamma;
}

/// One request, served.
void serve(const Request& request, std::size_t gamma, Random& random, Counts& counts) {
  const bool changes = request.regimes.size() > 1;
  std::size_t regime = changes && uniform(random) < 0.5 ? 1 : 0;
  for (double tokens = 0; tokens < request.tokens;) {
    const std::size_t accepted = accepted_drafts(request, request.regimes[regime], gamma, random);
    for (std::size_t j = 0; j < accepted; ++j) ++counts.accepted[j];
    ++counts.rounds;
    tokens += 1 + static_cast<double>(accepted);
    for (std::size_t token = 0; changes && token <= accepted; ++token)
      if (uniform(random) < 1.0 / 20) regime = 1 - regime;
  }
}

/// Tokens per step by gamma where only serving tells.
Values served_truth(const Law& law, const Traffic& traffic, Random& random) {
  constexpr int requests = 2500;
  Values truth = {1};
  const std::uint64_t seed = random();
  for (std::size_t gamma = 1; gamma <= most_drafts; ++gamma) {
    Random same(seed);
    Counts counts;
    for (int i = 0; i < requests; ++i) serve(law.request(traffic, same), gamma, same, counts);
    double accepted = 0;
    for (const double its : counts.accepted) accepted += its;
    truth.push_back(1 + accepted / counts.rounds);
  }
  return truth;
}

/// Tokens per step of the traffic, by gamma.
Values truth_of(const Law& law, const Traffic& traffic, Random& random) {
  constexpr int requests = 6000, looks = 12;
  double tokens = 0;
  Values steps(most_drafts + 1, 0);
  for (int i = 0; i < requests; ++i) {
    const Request request = law.request(traffic, random);
    if (request.regimes.size() > 1) return served_truth(law, traffic, random);
    tokens += request.tokens;
    Values per_step(most_drafts + 1, 1);
    const int its_looks = request.ends_early ? looks : 1;
    for (int look = 0; look < its_looks; ++look) {
      double alive = 1;
      for (std::size_t j = 0; j < most_drafts && alive > 0; ++j) {
        const double its = request.regimes[0][j] + (request.ends_early ? normal(random) : 0);
        alive *= request.ends_early && logistic(its) < 0.5 ? 0 : logistic(its);
        for (std::size_t gamma = j + 1; gamma <= most_drafts; ++gamma) per_step[gamma] += alive / its_looks;
      }
    }
    for (std::size_t gamma = 0; gamma <= most_drafts; ++gamma) steps[gamma] += request.tokens / per_step[gamma];
  }
  Values truth;
  for (const double its : steps) truth.push_back(tokens / its);
  return truth;
}

void study(const Law& law, std::size_t requests, std::size_t gamma, int repetitions) {
  Random random(7 + requests * 31 + gamma);
  Values run, recommended, longest, width, regret;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const double middle = uniform(random, 0.55, 0.9);
    constexpr double deltas[] = {0, 0.05, 0.1, 0.2}, costs[] = {0.03, 0.08, 0.15};
    const Traffic traffic = {std::log(middle / (1 - middle)), uniform(random, 0.2, 1.2), deltas[random() % 4]};
    const double c = costs[random() % 3];
    Counts counts;
    Values lengths;
    for (std::size_t i = 0; i < requests / law.repeats; ++i) {
      const Request request = law.request(traffic, random);
      lengths.push_back(request.tokens);
      serve(request, gamma, random, counts);
    }
    const double middle_length = mean(lengths);
    double square = 0;
    for (const double length : lengths) square += std::pow(length / middle_length - 1, 2);
    estimate::CountEvidence counted = {static_cast<std::int64_t>(gamma), {}, counts.rounds,
                                       static_cast<double>(lengths.size()),
                                       square / static_cast<double>(lengths.size())};
    for (std::size_t j = 0; j < gamma; ++j) counted.survival.push_back(counts.accepted[j] / counts.rounds);
    counted.rounds *= static_cast<double>(law.repeats);
    const estimate::TokenWorlds worlds = estimate::population_worlds(
        estimate::population_prior(), {}, {{counted}}, most_drafts, {1000, static_cast<std::uint64_t>(repetition)});
    const Values truth = truth_of(law, traffic, random);
    const std::size_t chosen = least_regret(worlds, c, 0), shown = std::max<std::size_t>(chosen, 1);
    const auto holds = [&](std::size_t at) {
      const double low = quantile(worlds.tokens[at], 0.025), high = quantile(worlds.tokens[at], 0.975);
      return low <= truth[at] && truth[at] <= high ? 1.0 : 0.0;
    };
    run.push_back(holds(gamma));
    recommended.push_back(holds(shown));
    longest.push_back(holds(most_drafts));
    width.push_back((quantile(worlds.tokens[shown], 0.975) - quantile(worlds.tokens[shown], 0.025)) / 2 / truth[shown]);
    regret.push_back(loss(truth, c, chosen, 0));
  }
  fmt::print("{:16} {:5} requests, gamma {}: holds at it {:3.0f}%, at the recommended {:3.0f}%, at 8 {:3.0f}%; half-width "
             "{:4.1f}%; regret mean {:.2f}%, 95th percentile {:.2f}%\n",
             law.name, requests, gamma, 100 * mean(run), 100 * mean(recommended), 100 * mean(longest),
             100 * quantile(width, 0.5), 100 * mean(regret), 100 * quantile(regret, 0.95));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How often worlds of acceptance hold the truth, and what choosing by them loses");
  int repetitions = 200;
  std::string left_out;
  app.add_option("--repetitions", repetitions, "simulated servers per row");
  std::string only;
  app.add_option("--law", only, "one of the laws alone");
  app.add_option("--left-out", left_out, "priors that have not seen a target, by scripts/fit_acceptance_priors.py");
  CLI11_PARSE(app, argc, argv);
  published_curves(left_out.empty() ? LeftOut() : read_left_out(left_out));
  fmt::print("\nCounts of simulated traffic\n");
  for (const Law& law : all_laws()) {
    if (!only.empty() && law.name != only) continue;
    study(law, 200, 3, repetitions);
    study(law, 200, 5, repetitions);
  }
  if (!only.empty()) return 0;
  const std::vector<Law> laws = all_laws();
  study(laws[0], 20, 3, repetitions);
  study(laws[0], 200, 1, repetitions);
  for (const std::size_t law : {0, 1, 4, 7}) study(laws[law], 5000, law == 7 ? 5 : 3, std::max(20, repetitions / 4));
  return 0;
}
