#include "render/figures/drawing_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "render/figures/drawing_text.hpp"
#include "render/figures/gnuplot_marks.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

/// In heights of the font; with less, panels are placed one below the other.
constexpr double narrowest_panel = 18;
/// Width of a bold letter, in widths of a plain one.
constexpr double bold_width = 1.1;
/// Width of a legend's line beside its name, in heights of the font.
constexpr double legend_sample = 4.5;
// Room beside the axes, likewise: numbers and the label, and the scale of colours.
constexpr double beside_y_axis = 6;
constexpr double below_x_axis = 4.5;
/// A title is centred above the axes, which lie to the right of the panel's middle.
constexpr double beside_title = 4;
constexpr double beside_cells = 8;

double height_of(const PlacedText& text) { return static_cast<double>(text.lines.size()) * line_height(text.font); }

/// The width that gnuplot assumes, in heights of the font, when it drops columns.
double gnuplot_width(std::string_view name) { return 0.75 * static_cast<double>(character_count(name)); }

void add_to_legend(const ChartDrawing& drawing, std::size_t panel, double width, DrawingLegend& legend) {
  for (std::size_t i = 0; i < drawing.panels[panel].series.size(); ++i) {
    const DrawnSeries drawn = drawn_series(drawing, panel, i);
    const ChartMark mark = drawn.series.mark;
    if (!drawn.look.in_legend || mark == ChartMark::cells || mark == ChartMark::text) continue;
    const std::string name = shortened(visible(drawn.series.name), width / drawing.font - legend_sample);
    std::string entry = legend_entry(drawing, drawn, name);
    if (std::find(legend.entries.begin(), legend.entries.end(), entry) != legend.entries.end()) continue;
    legend.longest = std::max({legend.longest, width_in_ems(name), gnuplot_width(name)});
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

/// The arrangement of panels.
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

/// Title and caption, in lines that fit; their positions are not set yet.
void set_words(const ChartDrawing& drawing, const std::string& title, const std::string& caption, double width,
               DrawingLayout& layout) {
  layout.title.font = 1.15 * drawing.font;
  layout.caption.font = 0.86 * drawing.font;
  if (drawing.style.has_title) {
    layout.title.lines = lines_of(visible(title), width / (bold_width * layout.title.font));
  }
  if (drawing.style.has_caption) layout.caption.lines = lines_of(visible(caption), width / layout.caption.font);
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

/// The titles of panels, and in every row the additional height that the tallest of all needs.
void set_panel_titles(const ChartDrawing& drawing, PanelGrid& grid, DrawingLayout& layout) {
  std::size_t most_lines = 1;
  for (std::size_t p = 0; p < layout.panels.size(); ++p) {
    const std::string& title = drawing.panels[p].title;
    if (title.empty()) continue;
    layout.panels[p].title = lines_of(visible(title), (grid.width - grid.gap) / drawing.font - beside_title);
    most_lines = std::max(most_lines, layout.panels[p].title.size());
  }
  grid.plot_height += static_cast<double>(most_lines - 1) * line_height(drawing.font);
}

PanelRoom room_of(const ChartDrawing& drawing, std::size_t panel, const PanelPlace& place) {
  const double lines = static_cast<double>(place.title.size()) + below_x_axis;
  return {place.plot.width / drawing.font - beside_y_axis - (drawing.panels[panel].z ? beside_cells : 0),
          place.plot.height / drawing.font - lines};
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
  const double entry = (legend.longest + legend_sample) * font;
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
  PanelGrid grid = panel_grid(drawing, columns, pad);
  set_panel_titles(drawing, grid, layout);
  for (std::size_t p = 0; p < drawing.panels.size(); ++p) {
    if (has_common_legend) {
      add_to_legend(drawing, p, layout.width - 2 * pad, layout.common_legend);
    } else {
      add_to_legend(drawing, p, grid.width - grid.gap, layout.legends[p]);
    }
  }
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
  for (std::size_t p = 0; p < layout.panels.size(); ++p) layout.panels[p].room = room_of(drawing, p, layout.panels[p]);
  return layout;
}

}  // namespace specdec::render
