#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "planner/question_error.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/text.hpp"

/// Part of trace_charts.hpp: a recording's acceptance by position.
namespace specdec::render {

namespace {

/// The single rate as a line with its interval around it.
void add_rate(const estimate::AcceptanceEstimate& alpha, const std::vector<double>& x, ChartPanel& panel) {
  if (!alpha.value) return;
  if (alpha.ci95) {
    panel.series.push_back({.name = "i.i.d. at α, 95% interval",
                            .mark = ChartMark::band,
                            .x = x,
                            .low = std::vector<double>(x.size(), alpha.ci95->lo),
                            .high = std::vector<double>(x.size(), alpha.ci95->hi),
                            .role = ChartRole::reference,
                            .colour = 0});
  }
  panel.series.push_back({.name = "i.i.d. at α",
                          .x = x,
                          .y = std::vector<double>(x.size(), *alpha.value),
                          .role = ChartRole::reference,
                          .colour = 0});
}

/// For acceptance that is known exactly.
ChartSeries observed_points(const std::vector<planning::PositionAcceptance>& positions, const std::vector<double>& x) {
  ChartSeries points{.name = "observed", .mark = ChartMark::points, .x = x, .role = ChartRole::highlight, .colour = 0};
  bool any_interval = false;
  for (const planning::PositionAcceptance& row : positions) {
    points.y.push_back(row.conditional ? row.conditional->lo : chart_gap);
    add_ends(row.conditional_ci95, points);
    any_interval = any_interval || row.conditional_ci95;
  }
  if (any_interval) {
    points.name = "observed, with 95% interval";
  } else {
    points.low.clear();
    points.high.clear();
  }
  return points;
}

ChartSeries observed_brackets(const std::vector<planning::PositionAcceptance>& positions,
                              const std::vector<double>& x) {
  ChartSeries band{.name = "observed, within brackets", .mark = ChartMark::band, .x = x, .colour = 0};
  for (const planning::PositionAcceptance& row : positions) add_ends(row.conditional, band);
  return band;
}

void warn_of_gaps(const planning::TraceAnalysis& analysis, Chart& chart) {
  const auto& positions = analysis.replay->positions;
  const auto lacks = [&](auto of_row) { return std::any_of(positions.begin(), positions.end(), of_row); };
  if (lacks([](const auto& row) { return !row.conditional; })) {
    chart.warnings.push_back({"position_not_reached", "no draft was looked at in the last positions, which are gaps"});
  }
  if (lacks([](const auto& row) { return row.conditional && !row.conditional_ci95; })) {
    chart.warnings.push_back(
        {"no_interval", fmt::format("{} of sequences determine{} no interval where all accept alike",
                                    analysis.sequences, analysis.sequences == 1 ? "s" : "")});
  }
}

}  // namespace

std::string name_of_recording(const std::vector<std::string>& files) {
  if (files.empty()) return "a recording in memory";
  if (files.size() > 1) return fmt::format("{} files", files.size());
  const std::filesystem::path file = files.front();
  // A folder may end in a slash.
  return (file.has_filename() ? file : file.parent_path()).filename().string();
}

Chart position_acceptance_chart(const TraceChartInputs& inputs) {
  const planning::TraceAnalysis& analysis = inputs.analysis;
  if (!analysis.replay)
    throw planner::QuestionError("the recording cannot be replayed, so nothing is known by position");
  const auto& positions = analysis.replay->positions;
  Chart chart{.name = "position-acceptance", .title = "Acceptance by position in the round"};
  ChartPanel panel{.x = {.key = "position",
                         .label = "position of the draft in its round",
                         .low = 0.5,
                         .high = static_cast<double>(positions.size()) + 0.5},
                   .y = {.key = "acceptance", .label = "accepted, given all before it"}};
  std::vector<double> x;
  for (const auto& row : positions) x.push_back(static_cast<double>(row.position));
  const estimate::AcceptanceEstimate* const alpha = analysis.best_alpha();
  if (alpha) add_rate(*alpha, x, panel);
  const bool bracketed = analysis.replay->upper.has_value();
  panel.series.push_back(bracketed ? observed_brackets(positions, x) : observed_points(positions, x));
  chart.caption = fmt::format("Replay of {} at γ = {}", inputs.recording, positions.size());
  if (!bracketed && positions.front().conditional) {
    const auto last =
        std::find_if(positions.rbegin(), positions.rend(), [](const auto& row) { return row.conditional; });
    chart.caption += fmt::format(": {} at position 1, {} at {}", brief(positions.front().conditional->lo, 3),
                                 brief(last->conditional->lo, 3), last->position);
    if (alpha && alpha->value) {
      chart.caption += fmt::format("; one rate for all would be {}", brief(*alpha->value, 3));
      const auto& first = positions.front().conditional_ci95;
      if (first && alpha->ci95 && first->hi < alpha->ci95->lo) {
        chart.caption += ", more than at position 1, since rounds start after rejections, in harder text";
      }
    }
  }
  chart.caption += ".";
  if (!bracketed && panel.series.back().low.size() > 0) {
    const std::string clusters = alpha ? counted(alpha->clusters, alpha->prompts ? "prompt" : "sequence")
                                       : counted(analysis.sequences, "sequence");
    chart.caption += fmt::format(" Intervals: 95%, ratio of sums over {}, Student's t.", clusters);
  }
  warn_of_gaps(analysis, chart);
  if (bracketed) chart.warnings.push_back({"bracketed", "acceptance is known within brackets only"});
  chart.panels.push_back(std::move(panel));
  return chart;
}

}  // namespace specdec::render
