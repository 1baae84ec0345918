#pragma once

#include <string>
#include <vector>

#include "render/figures/axis_tics.hpp"
#include "render/figures/chart_drawing.hpp"

/// Positions of the parts of a drawing on paper. Lengths are in units of 1/96 inch.
namespace specdec::render {

/// Lines of a legend, as gnuplot draws them.
struct DrawingLegend {
  std::vector<std::string> entries = {};
  /// Width of the longest name, in heights of the font.
  double longest = 0;
};

/// A part of the drawing, from its lower left corner.
struct DrawingArea {
  double left = 0;
  double bottom = 0;
  double width = 0;
  double height = 0;
};

struct PanelPlace {
  DrawingArea plot;
  DrawingArea legend;
  /// Room between the axes.
  PanelRoom room = {};
  std::vector<std::string> title = {};
};

/// A block of text of one size, from its upper left corner.
struct PlacedText {
  std::vector<std::string> lines;
  double left = 0;
  double top = 0;
  double font = 0;
};

struct DrawingLayout {
  double width = 0;
  double height = 0;
  PlacedText title;
  PlacedText caption;
  std::vector<PanelPlace> panels;
  /// The legends of each panel, or one for all panels.
  std::vector<DrawingLegend> legends;
  DrawingLegend common_legend;
  DrawingArea common_legend_area;
};

/// Distance from one line of text to the next.
double line_height(double font);

/// Number of columns that a legend has within a width.
double legend_columns(const DrawingLegend& legend, double width, double font);

/// From the top: title, panels in rows with their legends below them, the legend that serves all of them, caption.
DrawingLayout layout_of(const ChartDrawing& drawing, const std::string& title, const std::string& caption, int columns);

}  // namespace specdec::render
