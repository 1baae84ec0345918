#include "render/page/page_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/planning/best_gamma.hpp"
#include "analysis/planning/speedup_map.hpp"
#include "render/figures/batch_chart.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/load_charts.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using planning::PointPlan;

/// Lines that one figure tells apart.
constexpr std::size_t most_lines = 6;

double number(std::int64_t count) { return static_cast<double>(count); }

std::string place_of(const planner::Plan& d, const PointPlan& point) {
  return has_several_contexts(d)
             ? fmt::format("batch {}, context {}", whole_or_brief(point.batch), whole_or_brief(point.context))
             : fmt::format("batch {}", whole_or_brief(point.batch));
}

/// The points of each context, in order of batch.
std::vector<std::vector<const PointPlan*>> points_by_context(const planner::Plan& d) {
  std::vector<std::vector<const PointPlan*>> contexts;
  for (const PointPlan& point : d.points()) {
    const auto same = [&](const auto& points) { return planner::same_context(points.front()->context, point.context); };
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

ChartAxis batch_axis(const planner::Plan& d) {
  const auto by_batch = [](const PointPlan& a, const PointPlan& b) { return a.batch < b.batch; };
  const auto [low, high] = std::minmax_element(d.points().begin(), d.points().end(), by_batch);
  const bool wide = high->batch > 8 * low->batch;
  return {"batch", "batch (sequences decoded together)", wide ? AxisScale::logarithmic : AxisScale::linear, {}, {}, {}};
}

bool has_several_batches(const planner::Plan& d) {
  return std::any_of(d.points().begin(), d.points().end(),
                     [&](const PointPlan& p) { return p.batch != d.points().front().batch; });
}

Chart time_over_batch(const planner::Plan& d) {
  Chart chart{.name = "time-per-token-over-batch",
              .title = "Time per output token against batch",
              .caption = "With the best gamma at each batch, and without speculation."};
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = batch_axis(d);
  panel.y = {"time_per_token_ms", "time per output token (ms)", AxisScale::linear, 0.0, {}, {}};
  const bool several = has_several_contexts(d);
  int colour = 0;
  for (const auto& points : points_by_context(d)) {
    const std::string where = several ? fmt::format(", context {}", whole_or_brief(points.front()->context)) : "";
    ChartSeries with{.name = "best gamma" + where, .colour = colour++};
    ChartSeries without{.name = "plain decoding" + where, .role = ChartRole::reference};
    for (const PointPlan* point : points) {
      if (!point->seconds_per_output_token) continue;
      with.x.push_back(point->batch);
      with.y.push_back(1000 * point->seconds_per_output_token->speculative);
      without.y.push_back(1000 * point->seconds_per_output_token->baseline);
    }
    if (with.x.empty()) continue;
    without.x = with.x;
    panel.series.push_back(std::move(without));
    panel.series.push_back(std::move(with));
  }
  return chart;
}

Chart drafts_chart(const planner::Plan& d) {
  Chart chart{.name = "drafts",
              .title = "Speedup of each draft",
              .caption = fmt::format("With its own best gamma, at {}; each bar is a 95% interval.",
                                     place_of(d, d.points().front()))};
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"draft", "draft", AxisScale::linear, {}, {}, {}};
  panel.y = {"speedup", "speedup over plain decoding", AxisScale::linear, 0.0, {}, {}};
  ChartSeries bars{.name = "speedup", .mark = ChartMark::bars};
  for (const planning::DraftPlan& draft : d.deployment.drafts) {
    const planning::DeploymentRow& best = draft.points.front().optimal();
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
std::optional<planning::RateInterval> rates_at_one_c(const planner::Plan& plan) {
  if (plan.bench || plan.drafts.size() != 1) return std::nullopt;
  const planner::Draft& draft = plan.drafts.front();
  if (!draft.cost.constants || !draft.cost.constants->c) return std::nullopt;
  if (draft.acceptance.stated) {
    const planner::StatedAcceptance& stated = *draft.acceptance.stated;
    if (stated.interval || stated.typed) return stated.interval;
    return planning::RateInterval{stated.rate, stated.rate};
  }
  const planner::Acceptance& acceptance = draft.acceptance;
  if (!acceptance.alpha_ci95 && !acceptance.alpha) return std::nullopt;
  const estimate::Interval alpha =
      acceptance.alpha_ci95 ? *acceptance.alpha_ci95 : estimate::Interval{*acceptance.alpha, *acceptance.alpha};
  return planning::RateInterval{core::AcceptanceRate(alpha.lo), core::AcceptanceRate(alpha.hi)};
}

/// Beside the best gamma of each batch: those that are best at some, the ends and one between.
std::vector<std::int64_t> gammas_beside(const std::vector<PointPlan>& points) {
  std::set<std::int64_t> best;
  for (const PointPlan& point : points) {
    if (point.optimal_row > 0) best.insert(point.optimal().gamma);
  }
  std::vector<std::int64_t> gammas(best.begin(), best.end());
  if (gammas.size() > 3) gammas = {gammas.front(), gammas[gammas.size() / 2], gammas.back()};
  return gammas;
}

/// One for each context; benchmark runs have one for all of theirs.
void add_batch_charts(const planner::Plan& d, std::vector<Chart>& charts) {
  const std::vector<std::int64_t> gammas = gammas_beside(d.points());
  if (d.bench || !has_several_contexts(d)) {
    charts.push_back(speedup_over_batch_chart(d, gammas));
    return;
  }
  for (const auto& points : points_by_context(d)) {
    const double context = points.front()->context;
    Chart& chart = charts.emplace_back(speedup_over_batch_chart(d, gammas, context));
    chart.name += fmt::format("-context-{}", whole_or_brief(context));
    chart.title += fmt::format(", context {}", whole_or_brief(context));
  }
}

}  // namespace

std::string subject_of(const planner::Plan& plan) {
  std::string deployment = deployment_of(plan);
  if (deployment != deployment_of("", nullptr) || plan.drafts.empty()) return deployment;
  return acceptance_words(plan.drafts[plan.shown()].acceptance, "alpha");
}

std::vector<Chart> plan_charts(const planner::Plan& d, const MapCells& cells) {
  std::vector<Chart> charts;
  charts.push_back(speedup_over_gamma_chart(d));
  if (const std::optional<planning::RateInterval> rates = rates_at_one_c(d)) {
    const planner::StepTimes& times = *d.drafts.front().cost.constants;
    SpeedupMapInputs map{.cost = times.with_c(0),
                         .alpha = estimate::Interval{rates->low.alpha(), rates->high.alpha()},
                         .c = estimate::Interval{*times.c, *times.c}};
    map.rates = cells.rates;
    map.costs = cells.costs;
    const std::optional<std::int64_t>& limit = d.question.max_gamma;
    map.max_gamma = std::min(limit.value_or(map.max_gamma), planning::largest_mapped_gamma);
    charts.push_back(speedup_map_chart(map));
  }
  if (has_several_batches(d)) {
    add_batch_charts(d, charts);
    const auto in_seconds = [](const PointPlan& point) { return point.seconds_per_output_token.has_value(); };
    if (std::any_of(d.points().begin(), d.points().end(), in_seconds)) charts.push_back(time_over_batch(d));
  }
  if (d.deployment.drafts.size() > 1) charts.push_back(drafts_chart(d));
  return charts;
}

RecordingCharts recording_charts(const planning::TraceAnalysis& analysis, const std::string& recording) {
  RecordingCharts made;
  const TraceChartInputs inputs{analysis, fmt::format("{} positions of {}", analysis.positions, recording)};
  using ChartOfAnalysis = Chart (*)(const TraceChartInputs&);
  const std::pair<std::string_view, ChartOfAnalysis> of_analysis[] = {
      {"acceptance by position", position_acceptance_chart},
      {"tokens per step", tokens_over_gamma_chart},
      {"lenience", lenience_chart},
      {"calibration", calibration_chart}};
  for (const auto& [name, chart_of] : of_analysis) {
    try {
      made.charts.push_back(chart_of(inputs));
    } catch (const planner::QuestionError& error) {
      made.left_out.push_back(fmt::format("{} ({})", name, error.with_options()));
    }
  }
  return made;
}

std::vector<Chart> capacity_charts(const planner::Capacity& capacity, const std::string& who) {
  const planner::CapacityQuestion& question = capacity.question;
  if (question.concurrency || question.replicas || !question.price) return {};
  return {cost_and_time_chart(capacity, who)};
}

}  // namespace specdec::render
