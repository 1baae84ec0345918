#include "cli/figures/drawing_layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cli/figures/drawing_text.hpp"
#include "cli/figures/gnuplot_marks.hpp"
#include "cli/step_figure.hpp"

namespace specdec::cli {
namespace {

/// In heights of the font; with less, panels stand one below the other.
constexpr double narrowest_panel = 18;
/// Of a bold letter, in widths of a plain one.
constexpr double bold_width = 1.15;

/// How many characters of a font go into a width.
std::size_t fitting(double width, double font) {
  return static_cast<std::size_t>(std::max(10.0, width / (0.53 * font)));
}

double height_of(const PlacedText& text) { return static_cast<double>(text.lines.size()) * line_height(text.font); }

void add_to_legend(const ChartDrawing& drawing, std::size_t panel, DrawingLegend& legend) {
  for (std::size_t i = 0; i < drawing.panels[panel].series.size(); ++i) {
    const DrawnSeries drawn = drawn_series(drawing, panel, i);
    const ChartMark mark = drawn.series.mark;
    if (!drawn.look.in_legend || mark == ChartMark::cells || mark == ChartMark::text) continue;
    std::string entry = legend_entry(drawing, drawn);
    if (std::find(legend.entries.begin(), legend.entries.end(), entry) != legend.entries.end()) continue;
    legend.longest = std::max(legend.longest, characters(visible(drawn.series.name)));
    legend.entries.push_back(std::move(entry));
  }
}

double legend_height(const DrawingLegend& legend, double width, double font) {
  if (legend.entries.empty()) return 0;
  const double rows = std::ceil(static_cast<double>(legend.entries.size()) / legend_columns(legend, width, font));
  return (rows * 1.4 + 0.5) * font;
}

/// In widths of a panel.
double plot_height(std::size_t columns, std::size_t rows) {
  return columns > 2 ? 0.85 : columns == 2 ? 0.68 : rows > 1 ? 0.44 : 0.54;
}

/// How panels are arranged.
struct PanelGrid {
  std::size_t columns;
  std::size_t rows;
  double width;  ///< from one panel to the next
  double gap;    ///< between panels
  double plot_height;
};

PanelGrid panel_grid(const ChartDrawing& drawing, int asked_columns, double pad) {
  const std::size_t count = drawing.panels.size();
  const double width = drawing.style.width;
  PanelGrid grid{};
  grid.columns = std::min(static_cast<std::size_t>(asked_columns), count);
  while (grid.columns > 1 && width / static_cast<double>(grid.columns) < narrowest_panel * drawing.font) --grid.columns;
  grid.rows = (count + grid.columns - 1) / grid.columns;
  grid.width = (width - pad) / static_cast<double>(grid.columns);
  grid.gap = grid.columns > 1 ? 0.8 * drawing.font : 0;
  grid.plot_height = plot_height(grid.columns, grid.rows) * grid.width + 3.5 * drawing.font;
  return grid;
}

/// Title and caption, in lines that fit; where they stand is not said yet.
void set_words(const ChartDrawing& drawing, const std::string& title, const std::string& caption, double width,
               DrawingLayout& layout) {
  layout.title.font = 1.15 * drawing.font;
  layout.caption.font = 0.86 * drawing.font;
  if (!drawing.style.has_words) return;
  layout.title.lines = lines_of(visible(title), fitting(width, bold_width * layout.title.font));
  layout.caption.lines = lines_of(visible(caption), fitting(width, layout.caption.font));
}

/// The tallest legend of each row.
std::vector<double> legend_heights(const DrawingLayout& layout, const PanelGrid& grid, double font) {
  std::vector<double> heights(grid.rows, 0);
  for (std::size_t p = 0; p < layout.legends.size(); ++p) {
    double& height = heights[p / grid.columns];
    height = std::max(height, legend_height(layout.legends[p], grid.width - grid.gap, font));
  }
  return heights;
}

void place_panels(const PanelGrid& grid, const std::vector<double>& legends, double pad, double top,
                  DrawingLayout& layout) {
  for (std::size_t p = 0; p < layout.panels.size(); ++p) {
    const std::size_t row = p / grid.columns, column = p % grid.columns;
    const double bottom = top - grid.plot_height - legends[row];
    const double left = pad / 2 + static_cast<double>(column) * grid.width;
    layout.panels[p].legend = {left, bottom, grid.width - grid.gap, legends[row]};
    layout.panels[p].plot = {left, bottom + legends[row], grid.width - grid.gap, grid.plot_height};
    if (column + 1 == grid.columns) top = bottom;
  }
}

}  // namespace

double line_height(double font) { return 1.35 * font; }

double legend_columns(const DrawingLegend& legend, double width, double font) {
  const double entry = 0.58 * font * static_cast<double>(legend.longest) + 4.5 * font;
  return std::clamp(std::floor(width / entry), 1.0, std::max(1.0, static_cast<double>(legend.entries.size())));
}

DrawingLayout layout_of(const ChartDrawing& drawing, const std::string& title, const std::string& caption,
                        int columns) {
  const double font = drawing.font;
  const double pad = 0.7 * font;
  DrawingLayout layout;
  layout.width = drawing.style.width;
  layout.panels.resize(drawing.panels.size());
  layout.legends.resize(drawing.panels.size());
  set_words(drawing, title, caption, layout.width - 2 * pad, layout);

  const bool has_common_legend = shares_legend(drawing.panels, drawing.looks);
  for (std::size_t p = 0; p < drawing.panels.size(); ++p)
    add_to_legend(drawing, p, has_common_legend ? layout.common_legend : layout.legends[p]);
  const PanelGrid grid = panel_grid(drawing, columns, pad);
  const std::vector<double> legends = legend_heights(layout, grid, font);

  const double title_height = height_of(layout.title) + 1.2 * pad;
  const double caption_height = height_of(layout.caption) + 1.2 * pad;
  const double common_height = legend_height(layout.common_legend, layout.width - 2 * pad, font);
  layout.height = std::ceil(title_height + static_cast<double>(grid.rows) * grid.plot_height +
                            std::accumulate(legends.begin(), legends.end(), 0.0) + common_height + caption_height);
  layout.title.left = layout.caption.left = pad;
  layout.title.top = layout.height - 0.6 * pad;
  layout.caption.top = caption_height - 0.4 * pad;
  layout.common_legend_area = {pad, caption_height, layout.width - 2 * pad, common_height};
  place_panels(grid, legends, pad, layout.height - title_height, layout);
  return layout;
}

}  // namespace specdec::cli
