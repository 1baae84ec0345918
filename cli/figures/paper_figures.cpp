#include <fmt/format.h>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "cli/figures/chart.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

constexpr std::int64_t most_drawn_drafts = 1024;

std::vector<std::int64_t> gammas_of(const std::string& list) {
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

/// Of one value for each alpha.
template <class Value>
ChartSeries series_over(const std::vector<double>& alphas, std::string name, const Value& value) {
  ChartSeries series;
  series.name = std::move(name);
  series.x = alphas;
  for (const double alpha : alphas) series.y.push_back(value(core::AcceptanceRate(alpha)));
  return series;
}

// ---------------------------------------------------------------------------------------------------------- Figure 2

struct ExpectedTokensOptions {
  std::string gamma = "1,3,5,7,10";
  AlphaGrid alpha;
};

Chart expected_tokens_chart(const ExpectedTokensOptions& o) {
  Chart chart;
  chart.name = "expected-tokens";
  chart.title = "Expected tokens per step";
  chart.caption =
      "Tokens that one run of the target yields, its own included, if each draft is accepted with chance α: the more "
      "tokens are drafted, the more a high acceptance rate is worth; at α = 1 all γ + 1 stay (Leviathan et al. 2023, "
      "Fig. 2, Eq. 1).";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = o.alpha.axis();
  panel.y = {.key = "tokens_per_step", .label = "tokens per step", .low = 0};
  for (const std::int64_t gamma : gammas_of(o.gamma)) {
    panel.series.push_back(series_over(o.alpha.values(), gamma_name(gamma), [&](const core::AcceptanceRate& rate) {
      return theory::expected_tokens(rate, gamma);
    }));
  }
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

// ---------------------------------------------------------------------------------------------------------- Figure 4

struct TradeOffOptions {
  std::string gamma = "1,3,5,7,10";
  double c = 0;
  double c_hat = 0;
  AlphaGrid alpha;
};

Chart trade_off_chart(const TradeOffOptions& o) {
  Chart chart;
  chart.name = "speedup-and-operations";
  chart.title = "Speedup and arithmetic operations";
  chart.caption = fmt::format(
      "What drafting γ tokens per step gains in wall time and costs in operations, over plain decoding, at c = {} and "
      "ĉ = {}: operations grow most where drafts are rejected (Leviathan et al. 2023, Fig. 4, Theorems 3.8 and 3.11).",
      brief(o.c), brief(o.c_hat));
  chart.columns = 2;
  chart.panels.resize(2);
  chart.panels[0].title = "speedup";
  chart.panels[0].x = o.alpha.axis();
  chart.panels[0].y = {.key = "speedup", .label = "speedup (plain decoding = 1)", .low = 0};
  chart.panels[1].title = "operations";
  chart.panels[1].x = o.alpha.axis();
  chart.panels[1].y = {.key = "operations", .label = "operations (plain decoding = 1)", .low = 0};
  for (const std::int64_t gamma : gammas_of(o.gamma)) {
    chart.panels[0].series.push_back(
        series_over(o.alpha.values(), gamma_name(gamma),
                    [&](const core::AcceptanceRate& rate) { return theory::walltime_improvement(rate, gamma, o.c); }));
    chart.panels[1].series.push_back(
        series_over(o.alpha.values(), gamma_name(gamma),
                    [&](const core::AcceptanceRate& rate) { return theory::operations_factor(rate, gamma, o.c_hat); }));
  }
  chart.assumptions = {independence(), {"c", o.c, "user"}, {"c_hat", o.c_hat, "user"}};
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

}  // namespace

std::vector<FigureKind> paper_figures() {
  return {{"expected-tokens", "expected tokens per step against alpha (the paper's Fig. 2)", set_up_expected_tokens},
          {"speedup-and-operations", "speedup and operations against alpha (Fig. 4)", set_up_trade_off}};
}

}  // namespace specdec::cli
