#include "cli/page/plan_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/text.hpp"

namespace specdec::cli {
namespace {

using planning::DeploymentRow;
using planning::PointPlan;

/// Lines that one figure tells apart.
constexpr std::size_t most_lines = 6;
/// Gammas shown behind the best one.
constexpr std::int64_t gammas_behind = 6;

double number(std::int64_t count) { return static_cast<double>(count); }

std::string count_of(double value) {
  return value == std::round(value) ? fmt::format("{:.0f}", value) : brief(value, 3);
}

bool has_width(const estimate::Interval& interval) { return interval.lo < interval.hi; }

bool has_several_contexts(const Deployment& d) {
  return std::any_of(d.points().begin(), d.points().end(),
                     [&](const PointPlan& p) { return p.context != d.points().front().context; });
}

std::string place_of(const Deployment& d, const PointPlan& point) {
  return has_several_contexts(d) ? fmt::format("batch {}, context {}", count_of(point.batch), count_of(point.context))
                                 : fmt::format("batch {}", count_of(point.batch));
}

ChartSeries plain_decoding() {
  ChartSeries line;
  line.name = "plain decoding";
  line.mark = ChartMark::horizontal;
  line.y = {1};
  line.role = ChartRole::reference;
  return line;
}

/// At most most_lines of the points, first and last among them.
std::vector<const PointPlan*> shown_points(const Deployment& d) {
  const std::vector<PointPlan>& points = d.points();
  std::vector<const PointPlan*> shown;
  const std::size_t count = std::min(points.size(), most_lines);
  for (std::size_t i = 0; i < count; ++i) {
    shown.push_back(&points[count == 1 ? 0 : i * (points.size() - 1) / (count - 1)]);
  }
  return shown;
}

std::int64_t last_gamma(const std::vector<const PointPlan*>& points) {
  std::int64_t last = 8;
  for (const PointPlan* point : points) {
    last = std::max(last, point->optimal().gamma + gammas_behind);
  }
  return last;
}

std::string caption_of_gammas(const Deployment& d, const std::vector<const PointPlan*>& points) {
  std::vector<std::string> parts;
  for (const PointPlan* point : points) {
    parts.push_back(fmt::format("{}gamma {} with {:.2f} times the speed of plain decoding",
                                points.size() == 1 ? "" : "at " + place_of(d, *point) + " ", point->optimal().gamma,
                                point->optimal().speedup));
  }
  std::string text = "The best: ";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  return text + ".";
}

/// @param in_use  the gamma in use, where it is known and there is one point
Chart speedup_over_gamma(const Deployment& d, const std::optional<std::int64_t>& in_use) {
  const std::vector<const PointPlan*> points = shown_points(d);
  const bool one = points.size() == 1;
  const std::int64_t last = std::max(last_gamma(points), in_use.value_or(0) + 1);
  Chart chart;
  chart.name = "speedup-over-gamma";
  chart.title = "Speedup against drafted tokens per step";
  chart.caption = caption_of_gammas(d, points);
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"gamma", "gamma (drafted tokens per step)", AxisScale::linear, 0.0, number(last), {}};
  panel.y = {"speedup", "speedup over plain decoding", AxisScale::linear, {}, {}, {}};
  if (one && !points.front()->near_optimal_gammas.empty()) {
    ChartSeries near;
    near.name = "near-best gammas";
    near.mark = ChartMark::box;
    near.role = ChartRole::reference;
    double lowest = 1, highest = 1;
    for (const DeploymentRow& row : points.front()->rows) {
      if (row.gamma > last) break;
      lowest = std::min({lowest, row.speedup, row.speedup_ci95.lo});
      highest = std::max({highest, row.speedup, row.speedup_ci95.hi});
    }
    near.x_low = {number(points.front()->near_optimal_gammas.front()) - 0.5};
    near.x_high = {std::min(number(points.front()->near_optimal_gammas.back()) + 0.5, number(last))};
    near.low = {lowest};
    near.high = {highest};
    panel.series.push_back(std::move(near));
  }
  panel.series.push_back(plain_decoding());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string place = place_of(d, *points[i]);
    ChartSeries line, band, best;
    line.name = one ? "speedup" : place;
    line.colour = band.colour = best.colour = static_cast<int>(i);
    band.name = one ? "95% interval" : "";
    band.mark = ChartMark::band;
    for (const DeploymentRow& row : points[i]->rows) {
      if (row.gamma > last) break;
      line.x.push_back(number(row.gamma));
      line.y.push_back(row.speedup);
      if (!one || !has_width(points[i]->optimal().speedup_ci95)) continue;
      band.x.push_back(number(row.gamma));
      band.low.push_back(row.speedup_ci95.lo);
      band.high.push_back(row.speedup_ci95.hi);
    }
    best.name = i == 0 ? "best" : "";
    best.mark = ChartMark::points;
    best.role = ChartRole::highlight;
    best.x = {number(points[i]->optimal().gamma)};
    best.y = {points[i]->optimal().speedup};
    if (!band.x.empty()) panel.series.push_back(std::move(band));
    panel.series.push_back(std::move(line));
    panel.series.push_back(std::move(best));
  }
  if (one && in_use) {
    ChartSeries used;
    used.name = "in use";
    used.mark = ChartMark::vertical;
    used.role = ChartRole::reference;
    used.x = {number(*in_use)};
    panel.series.push_back(std::move(used));
  }
  return chart;
}

Chart worst_regret_chart(const planning::Plan& plan) {
  Chart chart;
  chart.name = "regret";
  chart.title = "What each gamma can lose over the acceptance interval";
  chart.caption = fmt::format(
      "The largest share of the best speedup that a gamma gives away, wherever the acceptance rate lies in its "
      "interval. Gamma {} loses at most {}.",
      plan.interval->minimax.gamma, percent(plan.interval->minimax.worst_regret));
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"gamma", "gamma (drafted tokens per step)", AxisScale::linear, {}, {}, {}};
  panel.y = {"worst_regret", "largest regret (share of the best speedup)", AxisScale::linear, 0.0, {}, {}};
  ChartSeries bars;
  bars.name = "largest regret";
  bars.mark = ChartMark::bars;
  for (const planning::PlanRow& row : plan.rows) {
    if (!row.worst_regret) continue;
    bars.x.push_back(number(row.gamma));
    bars.y.push_back(*row.worst_regret);
  }
  panel.series.push_back(std::move(bars));
  return chart;
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

Chart speedup_over_batch(const Deployment& d) {
  Chart chart;
  chart.name = "speedup-over-batch";
  chart.title = "Speedup of the best gamma against batch";
  const auto& crossover = d.shown_plan().crossover_batch;
  chart.caption = "The best gamma stands above each point; the bars are 95% intervals.";
  if (crossover) chart.caption += fmt::format(" From batch {} on plain decoding is faster.", *crossover);
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = batch_axis(d);
  panel.y = {"speedup", "speedup over plain decoding", AxisScale::linear, {}, {}, {}};
  panel.series.push_back(plain_decoding());
  int colour = 0;
  for (const auto& points : points_by_context(d)) {
    ChartSeries line, ends, gammas;
    line.name = has_several_contexts(d) ? fmt::format("context {}", count_of(points.front()->context)) : "speedup";
    line.colour = ends.colour = gammas.colour = colour++;
    ends.mark = ChartMark::points;
    gammas.mark = ChartMark::text;
    for (const PointPlan* point : points) {
      const auto& interval = point->optimal().speedup_ci95;
      line.x.push_back(point->batch);
      line.y.push_back(point->optimal().speedup);
      ends.low.push_back(interval.lo);
      ends.high.push_back(interval.hi);
      // Above the interval.
      gammas.y.push_back(std::max(interval.hi, point->optimal().speedup) + 0.06);
      gammas.labels.push_back(fmt::format("{}", point->optimal().gamma));
    }
    ends.x = gammas.x = line.x;
    ends.y = line.y;
    panel.series.push_back(std::move(line));
    panel.series.push_back(std::move(ends));
    panel.series.push_back(std::move(gammas));
  }
  if (crossover) {
    ChartSeries line;
    line.name = "plain decoding is faster from here on";
    line.mark = ChartMark::vertical;
    line.role = ChartRole::reference;
    line.x = {number(*crossover)};
    panel.series.push_back(std::move(line));
  }
  return chart;
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
  panel.series.push_back(plain_decoding());
  return chart;
}

}  // namespace

std::vector<Chart> plan_charts(const PlanReport& plan) {
  std::vector<Chart> charts;
  if (plan.deployment) {
    const Deployment& d = *plan.deployment;
    std::optional<std::int64_t> in_use;
    if (d.points().front().deployed) in_use = d.points().front().deployed->gamma;
    if (plan.closed_form && plan.closed_form->deployed) in_use = plan.closed_form->deployed->gamma;
    charts.push_back(speedup_over_gamma(d, in_use));
    if (has_several_batches(d)) charts.push_back(speedup_over_batch(d));
    const auto in_seconds = [](const PointPlan& point) { return point.seconds_per_output_token.has_value(); };
    if (has_several_batches(d) && std::all_of(d.points().begin(), d.points().end(), in_seconds)) {
      charts.push_back(time_over_batch(d));
    }
    if (d.plan.drafts.size() > 1) charts.push_back(drafts_chart(d));
  }
  if (plan.closed_form && plan.closed_form->interval && plan.closed_form->interval->minimax.attained) {
    charts.push_back(worst_regret_chart(*plan.closed_form));
  }
  return charts;
}

}  // namespace specdec::cli
