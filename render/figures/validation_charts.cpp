#include "render/figures/validation_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "render/text.hpp"
#include "sim/validation/uniformity.hpp"

namespace specdec::render {

namespace {

/// Standard normal deviations beyond this occur once in 370.
constexpr double usual_deviation = 3;

ChartAxis gamma_axis() { return {"gamma", "γ (drafted tokens per step)"}; }

/// Half a place beyond the outer gammas, so that their points are not on the panel's edge.
void show_all_of(ChartPanel& panel) {
  double last = 1;
  for (const ChartSeries& series : panel.series) {
    for (const double x : series.x) last = std::max(last, x);
  }
  panel.x.low = 0.5;
  panel.x.high = last + 0.5;
}

ChartPanel fixed_laws_panel(const MonteCarloChartInputs& in, const std::vector<double>& alphas) {
  ChartPanel panel;
  panel.title = "fixed laws";
  panel.x = gamma_axis();
  panel.y = {"tokens_per_step", "tokens per step"};
  for (std::size_t a = 0; a < alphas.size(); ++a) {
    ChartSeries line, points;
    line.name = fmt::format("Eq. (1), α = {}", brief(alphas[a]));
    points.name = fmt::format("simulated, α = {}", brief(alphas[a]));
    points.mark = ChartMark::points;
    line.colour = points.colour = static_cast<int>(a);
    line.role = ChartRole::reference;
    for (const validation::TokensCheck& check : in.checks) {
      if (check.alpha != alphas[a]) continue;
      const auto gamma = static_cast<double>(check.gamma);
      line.x.push_back(gamma);
      line.y.push_back(check.expected);
      points.x.push_back(gamma);
      points.y.push_back(check.measured);
      points.low.push_back(check.interval().lo);
      points.high.push_back(check.interval().hi);
    }
    panel.series.push_back(std::move(line));
    panel.series.push_back(std::move(points));
  }
  return panel;
}

ChartPanel pair_panel(const MonteCarloChartInputs& in, int colour) {
  ChartPanel panel;
  panel.title = in.pair;
  panel.x = gamma_axis();
  panel.y = {"tokens_per_step", "tokens per step"};
  ChartSeries exact, closed_form, measured;
  exact.name = "exact law of the text";
  exact.colour = colour;
  closed_form.name = "Eq. (1) at its mean rate";
  closed_form.role = ChartRole::reference;
  measured.name = "measured, 95%";
  measured.mark = ChartMark::points;
  measured.colour = colour + 1;
  measured.role = ChartRole::highlight;
  for (const validation::Configuration& run : in.runs) {
    const auto gamma = static_cast<double>(run.gamma);
    const validation::TokensPerStep& tokens = run.tokens_per_step;
    exact.x.push_back(gamma);
    exact.y.push_back(tokens.replay);
    closed_form.x.push_back(gamma);
    closed_form.y.push_back(tokens.iid);
    measured.x.push_back(gamma);
    measured.y.push_back(tokens.measured.value);
    const estimate::Interval ci95 =
        tokens.measured.ci95.value_or(estimate::Interval{tokens.measured.value, tokens.measured.value});
    measured.low.push_back(ci95.lo);
    measured.high.push_back(ci95.hi);
  }
  for (ChartSeries* series : {&closed_form, &exact, &measured}) panel.series.push_back(std::move(*series));
  return panel;
}

ChartPanel deviations_panel(const MonteCarloChartInputs& in, const std::vector<double>& alphas) {
  ChartPanel panel;
  panel.title = "simulation - theory";
  panel.x = gamma_axis();
  panel.y = {"deviation_standard_errors", "standard errors"};
  panel.y.low = -5;
  panel.y.high = 5;
  for (std::size_t a = 0; a < alphas.size(); ++a) {
    ChartSeries points;
    points.name = fmt::format("simulated, α = {}", brief(alphas[a]));
    points.mark = ChartMark::points;
    points.colour = static_cast<int>(a);
    for (const validation::TokensCheck& check : in.checks) {
      if (check.alpha != alphas[a] || check.standard_error <= 0) continue;
      points.x.push_back(static_cast<double>(check.gamma));
      points.y.push_back(check.deviation());
    }
    if (!points.x.empty()) panel.series.push_back(std::move(points));
  }
  ChartSeries pair;
  pair.name = in.pair;
  pair.mark = ChartMark::points;
  pair.colour = static_cast<int>(alphas.size()) + 1;
  pair.role = ChartRole::highlight;
  for (const validation::Configuration& run : in.runs) {
    if (!run.steps_z) continue;
    // More steps than expected mean fewer tokens per step.
    pair.x.push_back(static_cast<double>(run.gamma));
    pair.y.push_back(-*run.steps_z);
  }
  if (!pair.x.empty()) panel.series.push_back(std::move(pair));
  panel.series.push_back(
      reference_line(ChartMark::horizontal, "±3, 1 in 370 beyond", {-usual_deviation, usual_deviation}));
  panel.series.push_back(reference_line(ChartMark::horizontal, "", {0}));
  return panel;
}

}  // namespace

Chart theory_against_simulation_chart(const MonteCarloChartInputs& in) {
  std::vector<double> alphas;
  for (const validation::TokensCheck& check : in.checks) {
    if (std::find(alphas.begin(), alphas.end(), check.alpha) == alphas.end()) alphas.push_back(check.alpha);
  }
  Chart chart;
  chart.name = "theory-against-simulation";
  for (const validation::Configuration& run : in.runs) {
    if (run.steps_z) continue;
    chart.warnings.push_back(
        {"too_little_chance",
         fmt::format("the {} has no deviation at γ = {}: its number of steps varies too little there", in.pair,
                     run.gamma)});
  }
  chart.title = "Tokens per step by theory and by simulation";
  chart.columns = in.runs.empty() ? 2 : 3;
  chart.panels.push_back(fixed_laws_panel(in, alphas));
  if (!in.runs.empty()) chart.panels.push_back(pair_panel(in, static_cast<int>(alphas.size())));
  chart.panels.push_back(deviations_panel(in, alphas));
  for (ChartPanel& panel : chart.panels) show_all_of(panel);
  double largest = 0;
  std::size_t deviations = 0;
  for (const ChartSeries& series : chart.panels.back().series) {
    if (series.mark != ChartMark::points) continue;
    for (const double deviation : series.y) largest = std::max(largest, std::abs(deviation));
    deviations += series.y.size();
  }
  const std::int64_t rounds = in.checks.empty() ? 0 : in.checks.front().rounds;
  chart.caption = fmt::format(
      "The largest of {} deviations is {} standard errors. Fixed laws: {} rounds for each point, whose error bars "
      "(95%, "
      "normal, rounds independent) are narrower than the points.",
      deviations, brief(largest, 3), rounds);
  if (!in.runs.empty()) {
    std::int64_t tokens = 0;
    for (const validation::Configuration& run : in.runs) tokens += run.counters.tokens;
    chart.caption += fmt::format(
        " The {}: {} tokens, error bars by {}; against the exact law of its own text, which Eq. (1) at the mean rate "
        "misses "
        "where acceptances depend on each other.",
        in.pair, tokens, in.runs.front().tokens_per_step.measured.method);
  }
  return chart;
}

Chart distribution_test_chart(DistributionChartInputs in) {
  Chart chart;
  chart.name = "distribution-test";
  chart.title = "The distribution test: a right sampler and a wrong one";
  chart.columns = 2;
  constexpr std::int64_t grid = 201;
  std::vector<std::string> told(in.samplers.size());
  for (const bool by_ratio : {true, false}) {
    ChartPanel& panel = chart.panels.emplace_back();
    panel.title = by_ratio ? "tokens ordered by q/p" : "tokens ordered by p";
    panel.x = {"u", "probability up to the token by its law, u"};
    panel.x.low = 0;
    panel.x.high = 1;
    panel.y = {"share_minus_u", "share of tokens up to u, minus u"};
    double bound = 0;
    for (std::size_t i = 0; i < in.samplers.size(); ++i) {
      validation::TransformSample& sample = in.samplers[i].sample;
      std::vector<double>& values = by_ratio ? sample.by_ratio : sample.by_probability;
      const auto count = static_cast<std::int64_t>(values.size());
      const validation::UniformDeviation found = validation::deviation_from_uniform(values, grid);
      const double distance = validation::kolmogorov_distance(values);
      bound = std::max(bound, validation::kolmogorov_bound(in.level, count));
      ChartSeries line;
      line.name = in.samplers[i].name;
      line.x = found.u;
      line.y = found.deviation;
      line.colour = static_cast<int>(i);
      if (i == 0) line.role = ChartRole::highlight;
      panel.series.push_back(std::move(line));
      told[i] += fmt::format("{}{} (p {} {})", told[i].empty() ? "" : " and ", brief(distance, 2),
                             validation::kolmogorov_p_value(distance, count) < 1e-99 ? "<" : "=",
                             brief(std::max(1e-99, validation::kolmogorov_p_value(distance, count)), 2));
    }
    panel.series.push_back(reference_line(ChartMark::horizontal,
                                          fmt::format("refused beyond, level {}", brief(in.level)), {-bound, bound}));
    panel.series.push_back(reference_line(ChartMark::horizontal, "", {0}));
  }
  chart.caption = fmt::format("{}, {} tokens of each sampler; largest distances by q/p and by p: ", in.pair,
                              in.samplers.empty() ? 0 : in.samplers.front().sample.by_ratio.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    chart.caption += fmt::format("{}{} {}", i > 0 ? "; " : "", in.samplers[i].name, told[i]);
  }
  chart.caption += ". p-values are upper bounds (Massart 1990).";
  return chart;
}

}  // namespace specdec::render
