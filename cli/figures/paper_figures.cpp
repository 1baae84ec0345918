#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {

using namespace render;
namespace {

constexpr std::int64_t most_drawn_drafts = 1024;

std::vector<std::int64_t> gammas_in(const std::string& list) {
  std::vector<std::int64_t> gammas;
  for (const std::string& entry : listed("--gamma", list))
    gammas.push_back(parse_integer("--gamma", entry, 0, most_drawn_drafts));
  return gammas;
}

void declare_gammas(Options& options, std::string& target) {
  options.text("-k,--gamma,--num-speculative-tokens", target, "LIST",
               "drafted tokens per step, separated by commas; a line for each");
}

/// Acceptance rates that a figure runs over.
struct AlphaGrid {
  double low = 0;
  double high = 1;
  std::int64_t points = 101;

  void declare(Options& options) {
    options.number("--min-alpha", low, {.lo = 0, .hi = 1}, "least acceptance rate shown");
    options.number("--max-alpha", high, {.lo = 0, .hi = 1}, "greatest acceptance rate shown");
    options.integer("--points", points, {.lo = 2, .hi = 10'000}, "acceptance rates that are computed");
  }

  std::vector<double> values() const {
    if (!(low < high)) throw UsageError(fmt::format("--max-alpha is {}, but must be above --min-alpha {}", high, low));
    std::vector<double> alphas;
    const auto last = static_cast<double>(points - 1);
    for (std::int64_t i = 0; i < points; ++i) {
      const double part = static_cast<double>(i) / last;
      alphas.push_back(low * (1 - part) + high * part);
    }
    return alphas;
  }

  ChartAxis axis() const { return {.key = "alpha", .label = "acceptance rate α", .low = low, .high = high}; }
};

Assumption independence() { return {"acceptances", "independent", "default"}; }

std::string gamma_name(std::int64_t gamma) { return fmt::format("γ = {}", gamma); }

/// A series with one value for each alpha.
template <class Value>
ChartSeries series_over(const std::vector<double>& alphas, std::string name, const Value& value) {
  ChartSeries series{.name = std::move(name), .x = alphas};
  for (const double alpha : alphas) series.y.push_back(value(core::AcceptanceRate(alpha)));
  return series;
}

// ---------------------------------------------------------------------------------------------------------- Figure 2

struct ExpectedTokensOptions {
  std::string gamma = "1,3,5,7,10";
  AlphaGrid alpha;
};

Chart expected_tokens_chart(const ExpectedTokensOptions& o) {
  Chart chart{.name = "expected-tokens", .title = "Expected tokens per step"};
  chart.caption =
      "Tokens that one run of the target yields, its own included, if each draft is accepted with chance α: the more "
      "tokens are drafted, the more a high acceptance rate is worth; at α = 1 all γ + 1 stay (Leviathan et al. 2023, "
      "Fig. 2, Eq. 1).";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = o.alpha.axis();
  panel.y = {.key = "tokens_per_step", .label = "tokens per step", .low = 0};
  for (const std::int64_t gamma : gammas_in(o.gamma)) {
    panel.series.push_back(series_over(o.alpha.values(), gamma_name(gamma), [&](const core::AcceptanceRate& rate) {
      return theory::expected_tokens(rate, gamma);
    }));
    panel.y.high = std::max(panel.y.high.value_or(0), static_cast<double>(gamma) + 1.5);
  }
  panel.series.push_back(series_over(o.alpha.values(), "γ without end", [](const core::AcceptanceRate& rate) {
    return theory::expected_tokens_limit(rate);
  }));
  panel.series.back().role = ChartRole::reference;
  chart.assumptions = {independence()};
  return chart;
}

std::function<Chart()> set_up_expected_tokens(Options& options) {
  const auto o = std::make_shared<ExpectedTokensOptions>();
  options.group("Figure");
  declare_gammas(options, o->gamma);
  o->alpha.declare(options);
  return [o] { return expected_tokens_chart(*o); };
}

// ---------------------------------------------------------------------------------------------------------- Figure 3

struct OptimalGammaOptions {
  std::string c = "0.01,0.02,0.05,0.1";
  std::int64_t max_gamma = 20;
  AlphaGrid alpha;
};

Chart optimal_gamma_chart(const OptimalGammaOptions& o) {
  Chart chart{.name = "optimal-gamma", .title = "The best number of drafts"};
  chart.caption =
      "The γ with the greatest speedup if each draft is accepted with chance α and takes c target steps; 0 where "
      "α is at most c, and without end towards α = 1 (Leviathan et al. 2023, Fig. 3, Section 3.5).";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = o.alpha.axis();
  panel.y = {
      .key = "gamma", .label = "best γ (drafted tokens per step)", .low = 0, .high = static_cast<double>(o.max_gamma)};
  for (const std::string& entry : listed("--c", o.c)) {
    const double c = parse_number("--c", entry, {});
    ChartSeries& series = panel.series.emplace_back(
        series_over(o.alpha.values(), fmt::format("c = {}", c), [&](const core::AcceptanceRate& rate) {
          const theory::OptimalGamma optimum = theory::optimal_gamma(rate, c);
          return optimum.attained() ? static_cast<double>(optimum.gamma) : std::numeric_limits<double>::quiet_NaN();
        }));
    series.mark = ChartMark::steps;
  }
  chart.assumptions = {independence()};
  return chart;
}

std::function<Chart()> set_up_optimal_gamma(Options& options) {
  const auto o = std::make_shared<OptimalGammaOptions>();
  options.group("Figure");
  options.text("--c", o->c, "LIST", "times of a draft step in target steps, separated by commas; a line for each");
  options.integer("--max-gamma", o->max_gamma, {.lo = 1, .hi = 1'000'000}, "greatest gamma shown");
  o->alpha.points = 1001;
  o->alpha.declare(options);
  return [o] { return optimal_gamma_chart(*o); };
}

// ---------------------------------------------------------------------------------------------------------- Figure 4

struct TradeOffOptions {
  std::string gamma = "3,5,7,10";
  double c = 0;
  double c_hat = 0;
  AlphaGrid alpha;
};

Chart trade_off_chart(const TradeOffOptions& o) {
  Chart chart{.name = "speedup-and-operations", .title = "Speedup and arithmetic operations", .columns = 2};
  chart.caption = fmt::format(
      "What drafting γ tokens per step gains in wall time and costs in operations, over plain decoding, at c = {} and "
      "ĉ = {}: operations grow most where drafts are rejected (Leviathan et al. 2023, Fig. 4, Theorems 3.8 and 3.11).",
      brief(o.c), brief(o.c_hat));
  chart.panels = {
      {.title = "time", .x = o.alpha.axis(), .y = {.key = "speedup", .label = "speedup (×)", .low = 0}},
      {.title = "operations", .x = o.alpha.axis(), .y = {.key = "operations", .label = "operations (×)", .low = 0}}};
  for (const std::int64_t gamma : gammas_in(o.gamma)) {
    chart.panels[0].series.push_back(
        series_over(o.alpha.values(), gamma_name(gamma),
                    [&](const core::AcceptanceRate& rate) { return theory::walltime_improvement(rate, gamma, o.c); }));
    chart.panels[1].series.push_back(
        series_over(o.alpha.values(), gamma_name(gamma),
                    [&](const core::AcceptanceRate& rate) { return theory::operations_factor(rate, gamma, o.c_hat); }));
  }
  chart.assumptions = {
      independence(), {"c", o.c, o.c == 0 ? "default" : "user"}, {"c_hat", o.c_hat, o.c_hat == 0 ? "default" : "user"}};
  return chart;
}

std::function<Chart()> set_up_trade_off(Options& options) {
  const auto o = std::make_shared<TradeOffOptions>();
  options.group("Figure");
  declare_gammas(options, o->gamma);
  options.number("--c", o->c, {}, "time of a draft step in target steps");
  options.number("--c-hat", o->c_hat, {}, "operations of a draft token in those of a target token");
  o->alpha.declare(options);
  return [o] { return trade_off_chart(*o); };
}

// ---------------------------------------------------------------------------------------------------------- Figure 5

struct StepTraceOptions {
  std::string gamma = "7,3";
  double alpha = 0.8;
  double c = 0.1;
  std::int64_t tokens = 12;
};

/// A call in a lane, from a time on; returns when it ends.
double add_call(ChartSeries& calls, double lane, double start, double duration) {
  constexpr double half_height = 0.3;
  calls.x_low.push_back(start);
  calls.x_high.push_back(start + duration);
  calls.low.push_back(lane - half_height);
  calls.high.push_back(lane + half_height);
  return start + duration;
}

Chart step_trace_chart(const StepTraceOptions& o) {
  const std::vector<std::int64_t> gammas = gammas_in(o.gamma);
  Chart chart{.name = "step-trace",
              .title = fmt::format("The calls behind {} token{}", o.tokens, o.tokens == 1 ? "" : "s")};
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {.key = "time_target_steps", .label = "time (target steps)", .low = 0};
  panel.y = {.key = "decoding", .label = "decoding", .categories = {"plain"}};
  for (auto gamma = gammas.rbegin(); gamma != gammas.rend(); ++gamma) panel.y.categories.push_back(gamma_name(*gamma));
  ChartSeries drafts{.name = "draft", .mark = ChartMark::box, .colour = chart_colours::speculation};
  ChartSeries verifications{.name = "target", .mark = ChartMark::box, .colour = chart_colours::target};
  std::vector<std::string> means;
  for (std::size_t i = 0; i < gammas.size(); ++i) {
    const auto lane = static_cast<double>(gammas.size() - i);
    const theory::FiniteGeneration mean =
        theory::finite_generation(core::AcceptanceRate(o.alpha), gammas[i], o.tokens, {.c = o.c});
    means.push_back(fmt::format("{} in {} steps with γ = {}", brief(mean.expected_cost, 3),
                                brief(mean.expected_steps, 3), gammas[i]));
    double time = 0;
    for (std::int64_t step = 0; step < std::llround(mean.expected_steps); ++step) {
      for (std::int64_t draft = 0; draft < gammas[i]; ++draft) time = add_call(drafts, lane, time, o.c);
      time = add_call(verifications, lane, time, 1);
    }
  }
  double time = 0;
  for (std::int64_t step = 0; step < o.tokens; ++step) time = add_call(verifications, 0, time, 1);
  if (!drafts.x_low.empty()) panel.series.push_back(std::move(drafts));
  panel.series.push_back(std::move(verifications));
  chart.caption = fmt::format(
      "Each step drafts γ tokens one after the other and verifies all of them in one call of the target. At α = {} and "
      "c = {} the mean times are {}, against {} for plain decoding; drawn are whole steps (Leviathan et al. 2023, "
      "Fig. 5, for a decoder alone).",
      brief(o.alpha), brief(o.c), fmt::join(means, ", "), o.tokens);
  chart.assumptions = {independence(), {"verify_factor", 1, "default"}, {"overhead", 0, "default"}};
  return chart;
}

std::function<Chart()> set_up_step_trace(Options& options) {
  const auto o = std::make_shared<StepTraceOptions>();
  options.group("Figure");
  options.text("-k,--gamma,--num-speculative-tokens", o->gamma, "LIST",
               "drafted tokens per step, separated by commas; a row for each");
  options.number("--alpha", o->alpha, {.lo = 0, .hi = 1}, "acceptance rate");
  options.number("--c", o->c, {.lo = 0, .hi = 100}, "time of a draft step in target steps");
  options.integer("--tokens", o->tokens, {.lo = 1, .hi = 200}, "tokens of the text");
  return [o] { return step_trace_chart(*o); };
}

}  // namespace

std::vector<FigureKind> paper_figures() {
  return {{"expected-tokens", "expected tokens per step against alpha (the paper's Fig. 2)", set_up_expected_tokens},
          {"optimal-gamma", "optimal gamma against alpha for several c (Fig. 3)", set_up_optimal_gamma},
          {"speedup-and-operations", "speedup and operations against alpha (Fig. 4)", set_up_trade_off},
          {"step-trace", "draft and target calls in time, against plain decoding (Fig. 5)", set_up_step_trace}};
}

}  // namespace specdec::cli
