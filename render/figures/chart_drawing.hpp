#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "render/figures/chart_looks.hpp"
#include "render/figures/chart_panel.hpp"
#include "render/figures/drawing_style.hpp"
#include "render/figures/drawing_theme.hpp"
#include "render/figures/panel_ranges.hpp"

namespace specdec::render {

/// Panels with the decisions made before the first line of their script. Refers to the panels.
struct ChartDrawing {
  ChartDrawing(const std::vector<ChartPanel>& shown, const DrawingStyle& drawing_style);

  bool is_terminal() const { return style.kind == DrawingKind::terminal; }

  const std::vector<ChartPanel>& panels;
  DrawingStyle style;
  const DrawingPalette& colours;
  ChartLooks looks;
  std::vector<PanelRanges> ranges;
  /// Size of text, in units of 1/96 inch: grows with the drawing, and is legible in a column of 85 mm.
  double font;
  /// The unit of line widths: 1 for text of 12 units.
  double line;
};

/// A series and how it is drawn. Refers to the drawing's panels.
struct DrawnSeries {
  const ChartSeries& series;
  SeriesLook look;
  /// gnuplot's name for its data.
  std::string data;
  std::string colour;
  std::string dash;
  /// The line type on a terminal, whose lines use different characters.
  int line_type;
  double line_width;
  double point_size;
  /// True if its panel on paper has cells, whose colours leave none for lines.
  bool over_cells;
};

DrawnSeries drawn_series(const ChartDrawing& drawing, std::size_t panel, std::size_t series);

}  // namespace specdec::render
