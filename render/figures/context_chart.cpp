#include "render/figures/context_chart.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/number_text.hpp"
#include "render/figures/chart_words.hpp"

namespace specdec::render {
namespace {

using planner::brief;
using planning::DraftPlan;
using planning::PointPlan;

ChartAxis context_axis() { return {"context", "context (tokens in the cache per sequence)", AxisScale::logarithmic}; }

std::vector<double> batches_of(const DraftPlan& draft) {
  std::vector<double> batches;
  for (const PointPlan& point : draft.points) {
    if (point.context == draft.points.front().context) batches.push_back(point.batch);
  }
  return batches;
}

/// The draft and the batch, as far as there are several.
std::string name_of_line(const DraftPlan& draft, bool drafts, double batch, bool batches) {
  std::vector<std::string> parts;
  if (drafts) parts.push_back(draft.name);
  if (batches) parts.push_back(fmt::format("batch {}", brief(batch)));
  if (parts.empty()) parts.emplace_back("recommended γ");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_lines(const std::string& name, const DraftPlan& draft, double batch, int colour,
               ChartPanel& speedups, ChartPanel& tokens) {
  ChartSeries band{.name = fmt::format("{}, {}", name, interval_name(draft.points)), .mark = ChartMark::band};
  ChartSeries line{.name = name}, steps{.name = name};
  for (const PointPlan& point : draft.points) {
    // A logarithmic axis has no place for an empty cache.
    if (point.batch != batch || !(point.context > 0)) continue;
    for (ChartSeries* const series : {&band, &line, &steps}) series->x.push_back(point.context);
    line.y.push_back(point.speedup_estimate.value);
    const auto& ci95 = point.speedup_estimate.ci95;
    band.low.push_back(ci95 ? ci95->lo : line.y.back());
    band.high.push_back(ci95 ? ci95->hi : line.y.back());
    steps.y.push_back(point.optimal().tokens_per_step);
  }
  if (line.x.empty()) return;
  for (ChartSeries* const series : {&band, &line, &steps}) series->colour = colour;
  speedups.series.push_back(std::move(band));
  speedups.series.push_back(std::move(line));
  tokens.series.push_back(std::move(steps));
}

bool is_flat(const ChartPanel& panel) {
  return std::all_of(panel.series.begin(), panel.series.end(), [](const ChartSeries& series) {
    const auto [least, most] = std::minmax_element(series.y.begin(), series.y.end());
    return *most - *least <= 1e-3 * *most;
  });
}

/// The fastest draft of a point, by its number; empty if plain decoding is.
std::optional<std::size_t> fastest_at(const std::vector<DraftPlan>& drafts, std::size_t point) {
  std::optional<std::size_t> fastest;
  double most = 1;
  for (std::size_t draft = 0; draft < drafts.size(); ++draft) {
    const double speedup = drafts[draft].points[point].speedup_estimate.value;
    if (speedup <= most) continue;
    most = speedup;
    fastest = draft;
  }
  return fastest;
}

std::string caption_of(const planner::Plan& plan, double batch) {
  const std::vector<DraftPlan>& drafts = plan.deployment.drafts;
  const std::vector<PointPlan>& points = drafts.front().points;
  std::vector<std::string> stretches;
  std::optional<std::optional<std::size_t>> last;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].batch != batch) continue;
    const std::optional<std::size_t> fastest = fastest_at(drafts, i);
    if (last == fastest) continue;
    last = fastest;
    const std::string who = !fastest            ? "plain decoding"
                            : drafts.size() > 1 ? drafts[*fastest].name
                                                : std::string("speculation");
    const double speedup = fastest ? drafts[*fastest].points[i].speedup_estimate.value : 1;
    const std::string gain = fastest ? fmt::format(" ({}×)", brief(speedup, 3)) : "";
    stretches.push_back(fmt::format("{}{} from context {} on", who, gain, brief(points[i].context)));
  }
  return fmt::format("{}: at batch {} the fastest is {}.", deployment_of(plan), brief(batch),
                     fmt::join(stretches, ", "));
}

}  // namespace

Chart speedup_over_context_chart(const planner::Plan& plan) {
  const std::vector<DraftPlan>& drafts = plan.deployment.drafts;
  const std::vector<double> batches = batches_of(drafts.front());
  Chart chart{.name = "speedup-over-context",
              .title = "Which draft pays at which context",
              .caption = caption_of(plan, batches.front())};
  ChartPanel speedups{.title = "over plain decoding", .x = context_axis(), .y = {"speedup", "speedup (×)"}};
  ChartPanel tokens{.title = "of the recommended γ", .x = context_axis(), .y = {"tokens_per_step", "tokens per step"}};
  int colour = 0;
  for (const DraftPlan& draft : drafts) {
    for (const double batch : batches) {
      const std::string name = name_of_line(draft, drafts.size() > 1, batch, batches.size() > 1);
      add_lines(name, draft, batch, colour++, speedups, tokens);
    }
  }
  speedups.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  chart.panels.push_back(std::move(speedups));
  if (is_flat(tokens)) return chart;
  tokens.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  chart.panels.push_back(std::move(tokens));
  chart.columns = 2;
  return chart;
}

}  // namespace specdec::render
