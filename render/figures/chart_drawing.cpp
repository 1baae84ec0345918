#include "render/figures/chart_drawing.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace specdec::render {
namespace {

std::string colour_of(const ChartDrawing& drawing, const ChartSeries& s, const SeriesLook& look) {
  if (s.role == ChartRole::reference) return drawing.colours.faded;
  return drawing.colours.data[static_cast<std::size_t>(look.number % chart_colours::count)];
}

std::string dash_of(const ChartSeries& s, const SeriesLook& look) {
  if (s.role == ChartRole::reference) return dash_of_number(look.number + 1);
  // A line across the panel has no points to distinguish it from another.
  const bool is_solid = s.role == ChartRole::highlight && s.mark != ChartMark::vertical;
  return is_solid ? "solid" : dash_of_number(look.number);
}

/// gnuplot's line type in a terminal: data have * # $ % @ & =, starting with the first, references a thin line and then
/// these starting with the last, intervals dots.
int terminal_line_type(const ChartSeries& s, const SeriesLook& look) {
  constexpr int thin = -1, dots = 0, characters = 7;
  if (s.mark == ChartMark::band) return dots;
  if (s.role != ChartRole::reference) return 1 + look.number % characters;
  return look.number == 0 ? thin : characters - (look.number - 1) % characters;
}

double width_of(ChartRole role) {
  return role == ChartRole::reference ? 1.5 : role == ChartRole::highlight ? 2.8 : 1.7;
}

double size_of_points(ChartRole role) { return role == ChartRole::highlight ? 0.75 : 0.55; }

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
          terminal_line_type(s, look),
          width_of(s.role) * drawing.line,
          size_of_points(s.role) * drawing.line,
          has_cells(drawing.panels[panel]) && !drawing.is_terminal()};
}

}  // namespace specdec::render
