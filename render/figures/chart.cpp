#include "render/figures/chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <stdexcept>

namespace specdec::render {
namespace {

void require_positive(const Chart& chart, const ChartAxis& axis, const std::vector<double>& values) {
  if (axis.scale == AxisScale::linear) return;
  for (const double value : values) {
    if (value <= 0)
      throw std::invalid_argument(
          fmt::format("require_drawable: {}: {} is {}, but its axis is logarithmic", chart.name, axis.key, value));
  }
}

}  // namespace

void require_drawable(const Chart& chart) {
  const auto is_empty = [](const ChartPanel& panel) {
    return panel.series.empty() || std::any_of(panel.series.begin(), panel.series.end(),
                                               [](const ChartSeries& s) { return length_of(s) == 0; });
  };
  if (chart.panels.empty() || std::any_of(chart.panels.begin(), chart.panels.end(), is_empty))
    throw std::invalid_argument(fmt::format("require_drawable: {}: there is nothing to draw", chart.name));
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& s : panel.series) {
      require_positive(chart, panel.x, s.x);
      require_positive(chart, panel.y, s.y);
      if (panel.z) require_positive(chart, *panel.z, s.z);
    }
  }
}

}  // namespace specdec::render
