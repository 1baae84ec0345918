#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "planner/question_error.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/text.hpp"

/// Part of trace_charts.hpp: the steps from replaying a recording.
namespace specdec::render {

namespace {

ChartSeries replayed_line(const estimate::ReplayReport& report, std::string name, int colour) {
  ChartSeries line{.name = std::move(name), .role = ChartRole::highlight, .colour = colour};
  for (const estimate::GammaReplay& row : report.gammas) {
    line.x.push_back(static_cast<double>(row.gamma));
    line.y.push_back(row.tokens_per_step.value);
  }
  return line;
}

/// Covers both ends of brackets.
ChartSeries replayed_band(const planning::ReplayAnalysis& replay) {
  ChartSeries band{.name = "95% interval", .mark = ChartMark::band, .colour = 0};
  for (std::size_t i = 0; i < replay.lower.gammas.size(); ++i) {
    const auto& low = replay.lower.gammas[i].tokens_per_step.ci95;
    const auto& high = replay.highest().gammas[i].tokens_per_step.ci95;
    band.x.push_back(static_cast<double>(replay.lower.gammas[i].gamma));
    // Plain decoding is exact.
    const bool plain = replay.lower.gammas[i].gamma == 0;
    band.low.push_back(low ? low->lo : plain ? 1 : chart_gap);
    band.high.push_back(high ? high->hi : plain ? 1 : chart_gap);
  }
  return band;
}

bool has_intervals(const estimate::ReplayReport& report) {
  return std::any_of(report.gammas.begin(), report.gammas.end(),
                     [](const auto& row) { return row.gamma > 0 && row.tokens_per_step.ci95; });
}

}  // namespace

Chart tokens_over_gamma_chart(const TraceChartInputs& inputs) {
  if (!inputs.analysis.replay)
    throw planner::QuestionError("the recording cannot be replayed, so nothing is known by gamma");
  const planning::ReplayAnalysis& replay = *inputs.analysis.replay;
  Chart chart{.name = "tokens-over-gamma", .title = "Tokens per step against drafted tokens"};
  ChartPanel panel{.x = {.key = "gamma", .label = "γ (drafted tokens per step)"},
                   .y = {.key = "tokens_per_step", .label = "tokens per step", .low = 1}};
  if (has_intervals(replay.lower) && has_intervals(replay.highest())) {
    panel.series.push_back(replayed_band(replay));
  } else {
    chart.warnings.push_back({"no_interval", "the recording determines no interval of its tokens per step"});
  }
  ChartSeries iid{.name = "i.i.d. at α", .role = ChartRole::reference, .colour = 0};
  for (const estimate::GammaReplay& row : replay.lower.gammas) {
    iid.x.push_back(static_cast<double>(row.gamma));
    iid.y.push_back(!replay.upper && row.iid_tokens_per_step ? *row.iid_tokens_per_step : chart_gap);
  }
  const bool has_iid = !replay.upper && replay.lower.gammas.back().iid_tokens_per_step;
  if (has_iid) panel.series.push_back(std::move(iid));
  panel.series.push_back(replayed_line(replay.lower, replay.upper ? "replay, lower ends" : "replay", 0));
  if (replay.upper) {
    panel.series.push_back(replayed_line(*replay.upper, "replay, upper ends", 2));
    chart.warnings.push_back(
        {"bracketed",
         "acceptance is known within brackets only: both of their ends are replayed, and there is no one "
         "rate"});
  } else if (!has_iid) {
    chart.warnings.push_back({"no_alpha", "no one rate is known, so that there is no line of it"});
  }
  const estimate::GammaReplay& told = replay.lower.gammas[std::min<std::size_t>(4, replay.lower.gammas.size() - 1)];
  chart.caption =
      fmt::format("{}: {} tokens per step at γ = {}{}", inputs.recording, estimate_label(told.tokens_per_step, 2),
                  told.gamma, replay.upper ? " at the lower ends of the brackets" : "");
  if (has_iid && told.difference) {
    chart.caption += fmt::format(", where one rate says {:.2f} ({:+.1f}%)", *told.iid_tokens_per_step,
                                 100 * *told.difference / told.tokens_per_step.value);
  }
  chart.caption += fmt::format(". Intervals: 95%, {}.", told.tokens_per_step.method);
  chart.panels.push_back(std::move(panel));
  return chart;
}

}  // namespace specdec::render
