#include "cli/page/report_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/planning/plan.hpp"
#include "analysis/planning/speedup_map.hpp"
#include "cli/figures/batch_figure.hpp"
#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/planning_charts.hpp"
#include "cli/plan_acceptance.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

using planning::DeploymentRow;
using planning::PointPlan;

/// Lines that one figure tells apart.
constexpr std::size_t most_lines = 6;

double number(std::int64_t count) { return static_cast<double>(count); }

std::string count_of(double value) {
  return value == std::round(value) ? fmt::format("{:.0f}", value) : brief(value, 3);
}

bool has_several_contexts(const Deployment& d) {
  return std::any_of(d.points().begin(), d.points().end(),
                     [&](const PointPlan& p) { return p.context != d.points().front().context; });
}

std::string place_of(const Deployment& d, const PointPlan& point) {
  return has_several_contexts(d) ? fmt::format("batch {}, context {}", count_of(point.batch), count_of(point.context))
                                 : fmt::format("batch {}", count_of(point.batch));
}

/// The points of each context, in order of batch.
std::vector<std::vector<const PointPlan*>> points_by_context(const Deployment& d) {
  std::vector<std::vector<const PointPlan*>> contexts;
  for (const PointPlan& point : d.points()) {
    const auto same = [&](const auto& points) { return points.front()->context == point.context; };
    const auto known = std::find_if(contexts.begin(), contexts.end(), same);
    if (known == contexts.end()) {
      contexts.push_back({&point});
    } else {
      known->push_back(&point);
    }
  }
  for (auto& points : contexts) {
    std::stable_sort(points.begin(), points.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
  }
  if (contexts.size() > most_lines) contexts.resize(most_lines);
  return contexts;
}

ChartAxis batch_axis(const Deployment& d) {
  const auto by_batch = [](const PointPlan& a, const PointPlan& b) { return a.batch < b.batch; };
  const auto [low, high] = std::minmax_element(d.points().begin(), d.points().end(), by_batch);
  const bool wide = high->batch > 8 * low->batch;
  return {"batch", "batch (sequences decoded together)", wide ? AxisScale::logarithmic : AxisScale::linear, {}, {}, {}};
}

bool has_several_batches(const Deployment& d) {
  return std::any_of(d.points().begin(), d.points().end(),
                     [&](const PointPlan& p) { return p.batch != d.points().front().batch; });
}

Chart time_over_batch(const Deployment& d) {
  Chart chart;
  chart.name = "time-per-token-over-batch";
  chart.title = "Time per output token against batch";
  chart.caption = "With the best gamma at each batch, and without speculation.";
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = batch_axis(d);
  panel.y = {"time_per_token_ms", "time per output token (ms)", AxisScale::linear, 0.0, {}, {}};
  const bool several = has_several_contexts(d);
  int colour = 0;
  for (const auto& points : points_by_context(d)) {
    ChartSeries with, without;
    const std::string where = several ? fmt::format(", context {}", count_of(points.front()->context)) : "";
    with.name = "best gamma" + where;
    without.name = "plain decoding" + where;
    with.colour = colour++;
    without.role = ChartRole::reference;
    for (const PointPlan* point : points) {
      with.x.push_back(point->batch);
      with.y.push_back(1000 * point->seconds_per_output_token->speculative);
      without.y.push_back(1000 * point->seconds_per_output_token->baseline);
    }
    without.x = with.x;
    panel.series.push_back(std::move(without));
    panel.series.push_back(std::move(with));
  }
  return chart;
}

Chart drafts_chart(const Deployment& d) {
  Chart chart;
  chart.name = "drafts";
  chart.title = "Speedup of each draft";
  chart.caption =
      fmt::format("With its own best gamma, at {}; the bars are 95% intervals.", place_of(d, d.points().front()));
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"draft", "draft", AxisScale::linear, {}, {}, {}};
  panel.y = {"speedup", "speedup over plain decoding", AxisScale::linear, 0.0, {}, {}};
  ChartSeries bars;
  bars.name = "speedup";
  bars.mark = ChartMark::bars;
  for (const planning::DraftPlan& draft : d.plan.drafts) {
    const DeploymentRow& best = draft.points.front().optimal();
    bars.x.push_back(number(std::ssize(panel.x.categories)));
    panel.x.categories.push_back(draft.name);
    bars.y.push_back(best.speedup);
    bars.low.push_back(best.speedup_ci95.lo);
    bars.high.push_back(best.speedup_ci95.hi);
  }
  panel.series.push_back(std::move(bars));
  panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  return chart;
}

/// The acceptance rate or its interval, where it is one and c alone is the cost.
std::optional<planning::RateInterval> rates_at_one_c(const PlanOptions& o, const PlanReport& plan) {
  if (!o.cost.c || !o.cost_files.empty() || o.roofline.hardware || !o.drafts.empty() || !o.bench.empty()) {
    return std::nullopt;
  }
  if (o.counters.empty() && o.trace.empty()) {
    const Acceptance stated = stated_acceptance(o);
    if (stated.interval || stated.profile.measured_positions() > 0) return stated.interval;
    const core::AcceptanceRate rate = planning::pooled_rate(stated.profile);
    return planning::RateInterval{rate, rate};
  }
  if (!plan.deployment || plan.deployment->drafts.empty()) return std::nullopt;
  const PlannedAcceptance& acceptance = plan.deployment->drafts[plan.deployment->shown()].acceptance;
  if (!acceptance.alpha_ci95 && !acceptance.alpha) return std::nullopt;
  const estimate::Interval alpha =
      acceptance.alpha_ci95 ? *acceptance.alpha_ci95 : estimate::Interval{*acceptance.alpha, *acceptance.alpha};
  return planning::RateInterval{core::AcceptanceRate(alpha.lo), core::AcceptanceRate(alpha.hi)};
}

Chart gamma_chart(const PlanOptions& o, const PlanReport& plan) {
  SpeedupOverGammaInputs inputs = speedup_over_gamma_inputs(*plan.deployment, o.tolerance);
  // The one point of the closed forms does not say what is in use.
  if (plan.closed_form && plan.closed_form->deployed) {
    const planning::DeployedGamma& used = *plan.closed_form->deployed;
    inputs.points.front().deployed = planning::DeployedAtPoint{
        used.gamma, used.speedup, used.regret, used.worst_regret.value_or(used.regret), used.exceeds_max_regret};
  }
  return speedup_over_gamma_chart(inputs);
}

/// Beside the best gamma of each batch: those that are best at some, the ends and one between.
std::vector<std::int64_t> gammas_beside(const std::vector<PointPlan>& points) {
  std::set<std::int64_t> best;
  for (const PointPlan& point : points) {
    if (point.optimal().gamma > 0) best.insert(point.optimal().gamma);
  }
  std::vector<std::int64_t> gammas(best.begin(), best.end());
  if (gammas.size() > 3) gammas = {gammas.front(), gammas[gammas.size() / 2], gammas.back()};
  return gammas;
}

/// One for each context; benchmark runs have one for all of theirs.
void add_batch_charts(const PlanOptions& o, const Deployment& d, std::vector<Chart>& charts) {
  BatchFigureInputs inputs{.points = d.points(),
                           .context = {},
                           .gammas = gammas_beside(d.points()),
                           .in_seconds = d.in_seconds,
                           .min_gain = d.min_gain,
                           .measured = d.bench ? &*d.bench : nullptr,
                           .who = deployment_text(o, o.roofline)};
  if (!o.model && !d.target_model.empty()) inputs.who = d.target_model;
  if (d.bench || !has_several_contexts(d)) {
    charts.push_back(speedup_over_batch(inputs));
    return;
  }
  for (const auto& points : points_by_context(d)) {
    inputs.context = points.front()->context;
    Chart& chart = charts.emplace_back(speedup_over_batch(inputs));
    chart.name += fmt::format("-context-{}", count_of(*inputs.context));
    chart.title += fmt::format(", context {}", count_of(*inputs.context));
  }
}

}  // namespace

std::vector<Chart> plan_charts(const PlanOptions& o, const PlanReport& plan) {
  std::vector<Chart> charts;
  if (plan.deployment) charts.push_back(gamma_chart(o, plan));
  if (const std::optional<planning::RateInterval> rates = rates_at_one_c(o, plan)) {
    SpeedupMapInputs map{.cost = o.cost.with_c(0),
                         .alpha = estimate::Interval{rates->low.alpha(), rates->high.alpha()},
                         .c = estimate::Interval{*o.cost.c, *o.cost.c}};
    // Each cell is a row of the data that stand on the page.
    map.rates = 46;
    map.costs = 31;
    map.max_gamma = std::min(o.max_gamma.value_or(map.max_gamma), planning::largest_mapped_gamma);
    charts.push_back(speedup_map_chart(map));
    const RegretInputs regret{*rates, {*o.cost.cost(), o.max_gamma.value_or(planning::no_max_gamma)}, o.gamma};
    if (rates->low.alpha() < rates->high.alpha() && planning::minimax_gamma(regret.rates, regret.space).attained) {
      charts.push_back(regret_chart(regret));
    }
  }
  if (!plan.deployment) return charts;
  const Deployment& d = *plan.deployment;
  if (has_several_batches(d)) {
    add_batch_charts(o, d, charts);
    const auto in_seconds = [](const PointPlan& point) { return point.seconds_per_output_token.has_value(); };
    if (std::all_of(d.points().begin(), d.points().end(), in_seconds)) charts.push_back(time_over_batch(d));
  }
  if (d.plan.drafts.size() > 1) charts.push_back(drafts_chart(d));
  return charts;
}

RecordingCharts recording_charts(const planning::TraceAnalysis& analysis, traces::PositionSource& source,
                                 const TokenStripInputs& strip) {
  RecordingCharts made;
  const TraceChartInputs inputs{analysis, fmt::format("{} positions of {}", analysis.positions, strip.recording)};
  const auto add = [&](std::string_view name, const std::function<Chart()>& draw) {
    try {
      made.charts.push_back(draw());
    } catch (const UsageError& error) {
      made.left_out.push_back(fmt::format("{} ({})", name, error.what()));
    }
  };
  using ChartOfAnalysis = Chart (*)(const TraceChartInputs&);
  const std::pair<std::string_view, ChartOfAnalysis> of_analysis[] = {
      {"acceptance by prefix", beta_histogram_chart},
      {"acceptance by position", position_acceptance_chart},
      {"tokens per step", tokens_over_gamma_chart},
      {"autocorrelation", autocorrelation_chart},
      {"lenience", lenience_chart},
      {"calibration", calibration_chart}};
  for (const auto& figure : of_analysis) {
    add(figure.first, [&] { return figure.second(inputs); });
  }
  add("tokens of one run", [&] { return recorded_token_strip(source, strip); });
  return made;
}

}  // namespace specdec::cli
