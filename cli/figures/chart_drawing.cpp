#include "cli/figures/chart_drawing.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace specdec::cli {
namespace {

std::string colour_of(const ChartDrawing& drawing, const ChartSeries& s, const SeriesLook& look) {
  if (s.role == ChartRole::reference) return drawing.colours.faded;
  const std::vector<std::string>& data = drawing.colours.data;
  return data[static_cast<std::size_t>(look.number) % data.size()];
}

std::string dash_of(const ChartSeries& s, const SeriesLook& look) {
  if (s.role == ChartRole::reference) return dash_of_number(look.number + 2);
  return s.role == ChartRole::highlight ? "solid" : dash_of_number(look.number);
}

double width_of(ChartRole role) {
  return role == ChartRole::reference ? 1.1 : role == ChartRole::highlight ? 2.8 : 1.7;
}

}  // namespace

ChartDrawing::ChartDrawing(const std::vector<ChartPanel>& shown, const DrawingStyle& drawing_style)
    : panels(shown),
      style(drawing_style),
      colours(palette_of(style.theme)),
      looks(looks_of(panels)),
      font(std::max(9.5, style.width / 56)),
      line(font / 12) {
  for (const ChartPanel& panel : panels) ranges.push_back(ranges_of(panel));
}

DrawnSeries drawn_series(const ChartDrawing& drawing, std::size_t panel, std::size_t series) {
  const ChartSeries& s = drawing.panels[panel].series[series];
  const SeriesLook& look = drawing.looks[panel][series];
  return {s,
          look,
          fmt::format("$panel{}_series{}", panel + 1, series + 1),
          colour_of(drawing, s, look),
          dash_of(s, look),
          width_of(s.role) * drawing.line,
          (s.role == ChartRole::highlight ? 0.75 : 0.55) * drawing.line,
          has_cells(drawing.panels[panel]) && !drawing.is_terminal()};
}

}  // namespace specdec::cli
