#include "render/figures/method_chart.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "render/figures/chart_words.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using validation::MethodResult;

/// More than these side by side would have no room for their names.
constexpr std::size_t most_bars = 6;

/// The result that a bar stands for, of a method or of a task of the only one, and its name.
struct Bar {
  const MethodResult* result;
  std::string name;
};

struct Bars {
  bool by_task = false;
  std::vector<Bar> bars;
};

/// Each method over all tasks; of a single one each of its tasks, too.
Bars bars_of(const std::vector<MethodResult>& results) {
  Bars found;
  for (const MethodResult& result : results) {
    if (result.task.empty()) found.bars.push_back({&result, name_of(result.method)});
  }
  if (found.bars.size() > 1 || results.size() <= 2) return found;
  found.by_task = true;
  found.bars.front().name = "all";
  for (const MethodResult& result : results) {
    if (!result.task.empty()) found.bars.push_back({&result, result.task});
  }
  return found;
}

/// A panel of bars with a measured value of each result that has one.
/// @param measured  the value of a result, may be empty
template <class Measured>
ChartPanel bar_panel(const Bars& shown, std::span<const Bar> part, ChartAxis y, const Measured& measured) {
  ChartPanel panel;
  panel.title = y.key == "speedup" ? "speedup" : "tokens per step";
  panel.x.key = panel.x.label = shown.by_task ? "task" : "method";
  panel.y = std::move(y);
  ChartSeries bars{.name = "measured, 95%", .mark = ChartMark::bars};
  for (const Bar& bar : part) {
    const std::optional<estimate::Estimate> value = measured(*bar.result);
    if (value) {
      bars.x.push_back(static_cast<double>(panel.x.categories.size()));
      bars.y.push_back(value->value);
      const estimate::Interval interval = value->ci95.value_or(estimate::exactly(value->value));
      bars.low.push_back(interval.lo);
      bars.high.push_back(interval.hi);
    }
    panel.x.categories.push_back(bar.name);
  }
  if (!bars.x.empty()) panel.series.push_back(std::move(bars));
  return panel;
}

ChartPanel tokens_panel(const Bars& shown, std::span<const Bar> part) {
  ChartPanel panel = bar_panel(shown, part, {"tokens_per_step", "tokens per step", AxisScale::linear, 0.0},
                               [](const MethodResult& result) { return std::optional(result.tokens_per_step); });
  ChartSeries closed{.name = "closed form", .mark = ChartMark::points, .role = ChartRole::reference};
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (!part[i].result->closed_form_tokens_per_step) continue;
    closed.x.push_back(static_cast<double>(i));
    closed.y.push_back(*part[i].result->closed_form_tokens_per_step);
  }
  if (!closed.x.empty()) panel.series.push_back(std::move(closed));
  return panel;
}

/// Without series where no result has a speedup.
ChartPanel speedup_panel(const Bars& shown, std::span<const Bar> part) {
  ChartPanel panel = bar_panel(shown, part, {"speedup", "speedup over plain decoding", AxisScale::linear, 0.0},
                               [](const MethodResult& result) { return result.speedup; });
  if (!panel.series.empty()) panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  return panel;
}

ChartPanel positions_panel(const std::vector<double>& shares) {
  ChartPanel panel;
  panel.title = "accepted by position";
  panel.x = {"position", "position of the draft in its step"};
  panel.y = {"share", "share that stays", AxisScale::linear, 0.0, 1.0};
  ChartSeries stays{.name = "stays", .mark = ChartMark::bars};
  for (const double share : shares) {
    stays.x.push_back(static_cast<double>(stays.x.size() + 1));
    stays.y.push_back(share);
  }
  panel.series.push_back(std::move(stays));
  return panel;
}

std::string caption_of(const Bars& shown) {
  const MethodResult& first = *shown.bars.front().result;
  const std::string run =
      fmt::format("{} sequence{} each, intervals over prompts", first.sequences, first.sequences == 1 ? "" : "s");
  if (shown.bars.size() == 1 || shown.by_task)
    return fmt::format("{}: {} tokens per step; {}.", name_of(first.method), estimate_label(first.tokens_per_step, 2),
                       run);
  const Bar& most =
      *std::ranges::max_element(shown.bars, {}, [](const Bar& bar) { return bar.result->tokens_per_step.value; });
  std::vector<std::string> lossy;
  for (const Bar& bar : shown.bars) {
    if (!bar.result->method.lossless()) lossy.push_back(bar.name);
  }
  return fmt::format("Most tokens per step: {}, {}; {}.{}", most.name, estimate_label(most.result->tokens_per_step, 2),
                     run, lossy.empty() ? "" : fmt::format(" Not lossless: {}.", fmt::join(lossy, ", ")));
}

}  // namespace

Chart methods_chart(const planner::MethodRuns& runs) {
  const Bars shown = bars_of(runs.results);
  Chart chart;
  chart.name = "methods";
  chart.title = "Ways to draft and to verify on the same prompts";
  chart.caption = caption_of(shown);
  const std::size_t parts = (shown.bars.size() + most_bars - 1) / most_bars;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto part =
        std::span(shown.bars).subspan(i * most_bars).first(std::min(most_bars, shown.bars.size() - i * most_bars));
    std::array panels = {tokens_panel(shown, part), speedup_panel(shown, part)};
    for (ChartPanel& panel : panels) {
      if (panel.series.empty()) continue;
      if (parts > 1) panel.title += fmt::format(", {} of {}", i + 1, parts);
      chart.panels.push_back(std::move(panel));
    }
  }
  const std::vector<double> shares = runs.results.front().acceptance_by_position();
  if ((shown.bars.size() == 1 || shown.by_task) && !shares.empty()) chart.panels.push_back(positions_panel(shares));
  chart.assumptions = runs.assumptions;
  chart.warnings = runs.warnings;
  return chart;
}

}  // namespace specdec::render
