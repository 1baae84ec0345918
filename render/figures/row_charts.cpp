#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "planner/question_error.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/text.hpp"

/// Part of trace_charts.hpp: figures that need whole rows.
namespace specdec::render {

namespace {

/// A line over lenience and the band of its intervals, if there are any.
void add_estimates(const std::vector<planning::LenienceEstimate>& rows, const std::string& name, int colour,
                   estimate::Estimate planning::LenienceEstimate::*what, ChartPanel& panel) {
  ChartSeries band{.name = name + ", 95% interval", .mark = ChartMark::band, .colour = colour};
  ChartSeries line{.name = name, .colour = colour};
  bool has_interval = false;
  for (const planning::LenienceEstimate& row : rows) {
    const estimate::Estimate& value = row.*what;
    band.x.push_back(row.lenience);
    line.x.push_back(row.lenience);
    line.y.push_back(value.value);
    add_ends(value.ci95, band);
    has_interval = has_interval || value.ci95;
  }
  if (has_interval) panel.series.push_back(std::move(band));
  panel.series.push_back(std::move(line));
}

}  // namespace

Chart lenience_chart(const TraceChartInputs& inputs) {
  if (inputs.analysis.lenience.empty()) {
    for (const Note& note : inputs.analysis.notes) {
      if (note.code == "lenience_needs_raw_rows") throw planner::QuestionError(note.message);
    }
    throw planner::QuestionError("the recording has no whole rows, which lenience needs: record it with --tier full");
  }
  std::vector<planning::LenienceEstimate> rows = inputs.analysis.lenience;
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.lenience < b.lenience; });
  Chart chart{.name = "lenience", .title = "Acceptance and distance from the target by lenience", .columns = 2};
  const ChartAxis x{.key = "lenience", .label = "lenience l (1: exact)", .low = 0, .high = 1};
  ChartPanel alpha{.title = "acceptance", .x = x, .y = {.key = "alpha", .label = "acceptance rate α"}};
  add_estimates(rows, "α", 0, &planning::LenienceEstimate::alpha, alpha);
  ChartPanel distance{.title = "distance from the target",
                      .x = x,
                      .y = {.key = "total_variation", .label = "total variation", .low = 0}};
  add_estimates(rows, "residual kept", 1, &planning::LenienceEstimate::distance_strict, distance);
  add_estimates(rows, "residual scaled", 2, &planning::LenienceEstimate::distance_lenient, distance);
  const auto half = std::min_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::abs(a.lenience - 0.5) < std::abs(b.lenience - 0.5);
  });
  const planning::LenienceEstimate& exact = rows.back();
  chart.caption = fmt::format(
      "{}: α {} at l = {}, {} at l = {}, where a drafted token's law lies {} from the "
      "target's with the residual kept, {} with it scaled.",
      inputs.recording, estimate_label(exact.alpha, 3), brief(exact.lenience), estimate_label(half->alpha, 3),
      brief(half->lenience), estimate_label(half->distance_strict, 3), estimate_label(half->distance_lenient, 3));
  if (exact.alpha.ci95) {
    chart.caption += fmt::format(" Intervals: 95%, {}.", exact.alpha.method);
  } else {
    chart.warnings.push_back({"no_interval", "one short sequence determines no interval"});
  }
  chart.panels = {std::move(alpha), std::move(distance)};
  return chart;
}

Chart calibration_chart(const TraceChartInputs& inputs) {
  const auto& bins = inputs.analysis.calibration;
  if (bins.empty()) {
    throw planner::QuestionError(
        "the recording has no whole rows, which calibration needs: record it with --tier full");
  }
  Chart chart{.name = "calibration", .title = "Acceptance of drafted tokens by the draft's confidence", .columns = 2};
  const ChartAxis x{.key = "confidence", .label = "draft's probability of its token", .low = 0, .high = 1};
  ChartPanel panel{.title = "acceptance", .x = x, .y = {.key = "acceptance", .label = "share accepted", .low = 0}};
  ChartPanel counts{
      .title = "how often", .x = x, .y = {.key = "share_of_drafts", .label = "share of drafted tokens", .low = 0}};
  panel.series.push_back(
      {.name = "accepted = probability", .x = {0, 0.5, 1}, .y = {0, 0.5, 1}, .role = ChartRole::reference});
  ChartSeries points{
      .name = "accepted, with 95% interval", .mark = ChartMark::points, .role = ChartRole::highlight, .colour = 0};
  ChartSeries bars{.name = "drafted tokens", .mark = ChartMark::bars, .colour = 0};
  std::string method;
  bool gaps = false;
  double drafted = 0;
  for (const estimate::CalibratedBin& bin : bins) drafted += bin.drafted;
  for (const estimate::CalibratedBin& bin : bins) {
    bars.x.push_back((bin.lo + bin.hi) / 2);
    bars.y.push_back(bin.drafted / drafted);
    gaps = gaps || !bin.acceptance || !bin.acceptance->ci95;
    if (!bin.acceptance) continue;
    points.x.push_back(*bin.confidence);
    points.y.push_back(bin.acceptance->value);
    add_ends(bin.acceptance->ci95, points);
    if (bin.acceptance->ci95) method = bin.acceptance->method;
  }
  if (gaps) {
    chart.warnings.push_back(
        {"bins_without_interval", "some probabilities were drafted in too few sequences for an interval, or never"});
  }
  const auto seen = [](const estimate::CalibratedBin& bin) { return bin.acceptance.has_value(); };
  const auto least = std::find_if(bins.begin(), bins.end(), seen);
  const auto most = std::find_if(bins.rbegin(), bins.rend(), seen);
  chart.caption = fmt::format(
      "{}: of tokens drafted with a probability of {} to {} the target accepts {}; of {} to {}, "
      "{}.",
      inputs.recording, brief(least->lo), brief(least->hi), percent(least->acceptance->value), brief(most->lo),
      brief(most->hi), percent(most->acceptance->value));
  if (!method.empty()) chart.caption += fmt::format(" Intervals: 95%, {}.", method);
  panel.series.push_back(std::move(points));
  counts.series.push_back(std::move(bars));
  chart.panels = {std::move(panel), std::move(counts)};
  return chart;
}

}  // namespace specdec::render
