#include "render/figures/gnuplot_marks.hpp"

#include <algorithm>
#include <cmath>

namespace specdec::render {
namespace {

void write_horizontals(const ChartSeries& s, const AxisRange& x, GnuplotText& script) {
  for (const double y : s.y) {
    script.say("{} {}\n{} {}\n", gnuplot_number(x.low), gnuplot_number(y), gnuplot_number(x.high), gnuplot_number(y));
  }
}

/// With two additional columns for error bars.
void write_points(const ChartPanel& panel, const ChartSeries& s, const AxisRange& y, GnuplotText& script) {
  const double shift = s.mark == ChartMark::bars ? bar_shift(panel, s) : 0;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (s.low.empty()) {
      script.say("{} {}", gnuplot_number(s.x[i] + shift), gnuplot_number(s.y[i]));
    } else {
      script.say("{} {} {} {}", gnuplot_number(s.x[i] + shift), gnuplot_number(s.y[i]),
                 gnuplot_number(end_within(s.low[i], y, panel.y)), gnuplot_number(end_within(s.high[i], y, panel.y)));
    }
  }
}

/// Blank lines separate the pieces between gaps.
void write_band(const ChartPanel& panel, const ChartSeries& s, const AxisRange& y, GnuplotText& script) {
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const double low = end_within(s.low[i], y, panel.y);
    const double high = end_within(s.high[i], y, panel.y);
    if (std::isfinite(s.x[i]) && std::isfinite(low) && std::isfinite(high)) {
      script.say("{} {} {}", gnuplot_number(s.x[i]), gnuplot_number(low), gnuplot_number(high));
    } else {
      script.say("");
    }
  }
}

void write_boxes(const ChartPanel& panel, const ChartSeries& s, const PanelRanges& ranges, GnuplotText& script) {
  for (std::size_t i = 0; i < s.x_low.size(); ++i) {
    const double left = end_within(s.x_low[i], ranges.x, panel.x), right = end_within(s.x_high[i], ranges.x, panel.x);
    const double low = end_within(s.low[i], ranges.y, panel.y), high = end_within(s.high[i], ranges.y, panel.y);
    script.say("{} {} {} {} {} {}", gnuplot_number(left), gnuplot_number(low), gnuplot_number(left),
               gnuplot_number(right), gnuplot_number(low), gnuplot_number(high));
  }
}

/// Column, row and value.
void write_cells(const ChartPanel& panel, const ChartSeries& s, GnuplotText& script) {
  const std::size_t columns = grid_of(panel, s).x_edges.size() - 1;
  for (std::size_t i = 0; i < s.z.size(); ++i) script.say("{} {} {}", i % columns, i / columns, gnuplot_number(s.z[i]));
}

/// Place and a digit that stands for the value.
void write_digits(const ChartPanel& panel, const ChartSeries& s, GnuplotText& script) {
  const auto [low, high] = colour_range_of(*panel.z, s);
  for (std::size_t i = 0; i < s.z.size(); ++i) {
    if (!std::isfinite(s.z[i])) continue;
    const double part =
        is_logarithmic(*panel.z) ? std::log(s.z[i] / low) / std::log(high / low) : (s.z[i] - low) / (high - low);
    script.say("{} {} {}", gnuplot_number(s.x[i]), gnuplot_number(s.y[i]),
               std::clamp(static_cast<int>(10 * part), 0, 9));
  }
}

void write_block(const ChartDrawing& drawing, std::size_t p, std::size_t index, GnuplotText& script) {
  const ChartPanel& panel = drawing.panels[p];
  const ChartSeries& s = panel.series[index];
  const PanelRanges& ranges = drawing.ranges[p];
  if (s.mark == ChartMark::vertical || s.mark == ChartMark::text) return;
  script.say("{} << END_OF_DATA", drawn_series(drawing, p, index).data);
  switch (s.mark) {
    case ChartMark::horizontal:
      write_horizontals(s, ranges.x, script);
      break;
    case ChartMark::band:
      write_band(panel, s, ranges.y, script);
      break;
    case ChartMark::box:
      write_boxes(panel, s, ranges, script);
      break;
    case ChartMark::cells:
      drawing.is_terminal() ? write_digits(panel, s, script) : write_cells(panel, s, script);
      break;
    default:
      write_points(panel, s, ranges.y, script);
      break;
  }
  script.say("END_OF_DATA");
}

}  // namespace

void write_data_blocks(const ChartDrawing& drawing, GnuplotText& script) {
  for (std::size_t p = 0; p < drawing.panels.size(); ++p) {
    for (std::size_t s = 0; s < drawing.panels[p].series.size(); ++s) write_block(drawing, p, s, script);
  }
}

}  // namespace specdec::render
