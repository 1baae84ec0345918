// How often do the 95% intervals from counters hold the truth? Rounds of known laws, counted as a server counts them:
// one scrape of everything, requests, or windows of time. docs/validation.md states the table.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/theory/tokens.hpp"

using namespace specdec;
using estimate::Interval;
using estimate::MeasuredAcceptance;
using traces::CountUnit;

namespace {

using Random = std::mt19937_64;

double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Which drafts of a text would be accepted, token by token.
class Text {
 public:
  virtual ~Text() = default;
  /// Whether a draft of the next token is accepted; goes on by one token.
  virtual bool next(Random& random) = 0;
  virtual void start_request(Random&) {}
};

/// A hidden state of the text: acceptance in each, and the chance that the next token is in the other.
struct TwoStateChain {
  double beta_first, beta_second, leave_first, leave_second;
};

class Chain final : public Text {
 public:
  explicit Chain(const TwoStateChain& chain) : chain_(chain) {}
  bool next(Random& random) override {
    const bool accepted = uniform(random) < (first_ ? chain_.beta_first : chain_.beta_second);
    if (uniform(random) < (first_ ? chain_.leave_first : chain_.leave_second)) first_ = !first_;
    return accepted;
  }

 private:
  TwoStateChain chain_;
  bool first_ = true;
};

/// Each request has a rate of its own: the mean -+ the spread, or evenly between.
class Requests final : public Text {
 public:
  Requests(double mean, double spread, bool two) : mean_(mean), spread_(spread), two_(two) {}
  bool next(Random& random) override { return uniform(random) < rate_; }
  void start_request(Random& random) override {
    const double u = two_ ? (uniform(random) < 0.5 ? -1 : 1) : std::sqrt(3.0) * (2 * uniform(random) - 1);
    rate_ = mean_ + spread_ * u;
  }

 private:
  double mean_, spread_;
  bool two_;
  double rate_ = 0;
};

/// A law of text with its truth: the rates that its tokens have under steps of any gamma, and their weights.
struct Law {
  std::string name;
  std::function<std::unique_ptr<Text>()> text;
  std::vector<double> rates, shares;

  double tokens_per_step(std::int64_t gamma) const {
    double steps = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      steps += shares[i] / theory::expected_tokens(core::AcceptanceRate(rates[i]), gamma);
    }
    return 1 / steps;
  }
  /// Accepted / looked at, weighted by rounds.
  double alpha_hat(std::int64_t gamma) const {
    double accepted = 0;
    double rejected = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const core::AcceptanceRate rate(rates[i]);
      const double tokens = theory::expected_tokens(rate, gamma);
      accepted += shares[i] / tokens * (tokens - 1);
      rejected += shares[i] / tokens * rate.one_minus_power(gamma);
    }
    return accepted / (accepted + rejected);
  }
};

Law chain_law(std::string name, const TwoStateChain& chain) {
  // The eigenvalues of diag(beta) P and their shares of the tokens: docs/theory.md#two-acceptance-states.
  const double stay_first = chain.beta_first * (1 - chain.leave_first);
  const double stay_second = chain.beta_second * (1 - chain.leave_second);
  const double middle = (stay_first + stay_second) / 2;
  const double half_gap =
      std::hypot((stay_first - stay_second) / 2,
                 std::sqrt(chain.beta_first * chain.beta_second * chain.leave_first * chain.leave_second));
  const double leaving = chain.leave_first + chain.leave_second;
  const double alpha = (chain.leave_second * chain.beta_first + chain.leave_first * chain.beta_second) / leaving;
  const double share_high = (alpha - (middle - half_gap)) / (2 * half_gap);
  return {std::move(name),
          [chain] { return std::make_unique<Chain>(chain); },
          {middle + half_gap, middle - half_gap},
          {share_high, 1 - share_high}};
}

Law request_law(std::string name, double mean, double spread, bool two) {
  Law law{std::move(name), [=] { return std::make_unique<Requests>(mean, spread, two); }, {}, {}};
  const int points = two ? 2 : 2000;
  for (int i = 0; i < points; ++i) {
    const double u = two ? 2 * i - 1 : std::sqrt(3.0) * (2 * (i + 0.5) / points - 1);
    law.rates.push_back(mean + spread * u);
    law.shares.push_back(1.0 / points);
  }
  return law;
}

/// A way of counting rounds.
struct Design {
  std::string name;
  CountUnit unit;
  int units;
};

traces::ServingCounts empty_counts(CountUnit unit, int gamma) {
  traces::ServingCounts counts;
  counts.unit = unit;
  counts.shape = traces::DraftShape::chain;
  counts.gamma = gamma;
  counts.rounds_by_accepted.resize(static_cast<std::size_t>(gamma) + 1);
  return counts;
}

/// Requests of 100 to 500 tokens one after the other; a window is 1000 tokens, wherever requests end.
estimate::ServingSummary measured(const Law& law, const Design& design, int gamma, Random& random) {
  const std::unique_ptr<Text> text = law.text();
  estimate::ServingSummaries summaries;
  for (int burn_in = 0; burn_in < 200; ++burn_in) text->next(random);
  traces::ServingCounts counts = empty_counts(design.unit, gamma);
  int left_of_request = 0;
  int left_of_unit = 0;
  for (int unit = 0; unit < design.units;) {
    if (left_of_request <= 0) {
      left_of_request = 100 + static_cast<int>(401 * uniform(random));
      text->start_request(random);
      if (design.unit != CountUnit::window) left_of_unit = left_of_request;
    }
    if (design.unit == CountUnit::window && left_of_unit <= 0) left_of_unit = 1000;
    int accepted = 0;
    // The bonus or corrected token: whether a draft of it would have been accepted plays no part.
    while (text->next(random) && accepted < gamma) ++accepted;
    counts.rounds_by_accepted[static_cast<std::size_t>(accepted)] += 1;
    left_of_request -= accepted + 1;
    left_of_unit -= accepted + 1;
    if (left_of_unit > 0) continue;
    ++unit;
    if (design.unit == CountUnit::total && unit < design.units) continue;
    summaries.add(counts);
    counts = empty_counts(design.unit, gamma);
  }
  return summaries.summaries()[0];
}

bool holds(const std::optional<Interval>& interval, double truth) {
  return interval && interval->lo <= truth && truth <= interval->hi;
}

std::string percent(int part, int whole) {
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

int main(int argc, char** argv) {
  int draws = 2000;
  int gamma = 4;
  CLI::App app("Coverage of the 95% intervals from counters of known laws");
  app.add_option("--draws", draws, "measurements of each law and design")->capture_default_str();
  app.add_option("--gamma", gamma, "drafted tokens per round")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const std::vector<Law> laws{
      chain_law("one rate, .7", {0.7, 0.7, 0.5, 0.5}),
      chain_law("sticky text, .9 and .3, stretches of 10 and 5", {0.9, 0.3, 0.1, 0.2}),
      chain_law("sticky text, .9 and .4, stretches of 100 and 50", {0.9, 0.4, 0.01, 0.02}),
      request_law("requests of .6 and .8", 0.7, 0.1, true),
      request_law("requests evenly from .53 to .87", 0.7, 0.1, false),
  };
  std::vector<Design> designs;
  for (const int requests : {16, 64, 256}) {
    designs.push_back({fmt::format("one scrape of {} requests", requests), CountUnit::total, requests});
  }
  for (const int requests : {4, 8, 16, 64, 256}) {
    designs.push_back({fmt::format("{} requests", requests), CountUnit::request, requests});
  }
  for (const int windows : {20, 100})
    designs.push_back({fmt::format("{} windows", windows), CountUnit::window, windows});

  fmt::print(
      "| law | counted as | alpha_hat | tokens per step, gamma {} | gamma 1 | gamma 2 | gamma 8 "
      "|\n|---|---|---|---|---|---|---|\n",
      gamma);
  for (const Law& law : laws) {
    for (const Design& design : designs) {
      int alpha = 0;
      std::vector<int> tokens(4);
      const std::vector<std::int64_t> gammas{gamma, 1, 2, 8};
      for (int draw = 0; draw < draws; ++draw) {
        Random random(static_cast<std::uint64_t>(draw) * 7919 + static_cast<std::uint64_t>(design.units));
        const estimate::ServingSummary summary = measured(law, design, gamma, random);
        const double truth = law.alpha_hat(gamma);
        alpha += holds(summary.alpha_hat->ci95, truth) ? 1 : 0;
        const MeasuredAcceptance curve(summary);
        for (std::size_t i = 0; i < gammas.size(); ++i) {
          const estimate::TokensPerStep at = curve.tokens_per_step(gammas[i]);
          tokens[i] += holds(at.ci95, law.tokens_per_step(gammas[i])) ? 1 : 0;
        }
      }
      fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", law.name, design.name, percent(alpha, draws),
                 percent(tokens[0], draws), percent(tokens[1], draws), percent(tokens[2], draws),
                 percent(tokens[3], draws));
      std::fflush(stdout);
    }
    std::fprintf(stderr, "%s: alpha_hat %.5f, tokens per step %.5f\n", law.name.c_str(), law.alpha_hat(gamma),
                 law.tokens_per_step(gamma));
  }
}
