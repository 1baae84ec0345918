#include "render/figures/gnuplot_script.hpp"

#include <fmt/ranges.h>
#include <algorithm>
#include <vector>

#include "render/figures/axis_tics.hpp"
#include "render/figures/chart_drawing.hpp"
#include "render/figures/drawing_layout.hpp"
#include "render/figures/drawing_text.hpp"
#include "render/figures/gnuplot_marks.hpp"
#include "render/figures/gnuplot_text.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

// ---- Axes.

/// Names of categories, shortened to fit: beside y to a third of the panel, below x to the width of one
/// category.
void write_categories(PanelAxis which, const ChartAxis& axis, const PanelRoom& room, GnuplotText& script) {
  const double width =
      which == PanelAxis::y ? room.width / 3 : room.width / static_cast<double>(axis.categories.size()) - 1;
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < axis.categories.size(); ++i)
    tics.push_back(fmt::format("{} {}", gnuplot_tic_label(shortened(visible(axis.categories[i]), width)), i));
  script.say("set {}tics ({})", which == PanelAxis::x ? 'x' : 'y', fmt::join(tics, ", "));
}

void write_places(std::string_view axis, const std::vector<double>& tics, GnuplotText& script) {
  if (tics.empty()) return;
  std::vector<std::string> places;
  for (const double tic : tics) places.push_back(gnuplot_number(tic));
  script.say("set {}tics ({})", axis, fmt::join(places, ", "));
}

void write_axis(const ChartDrawing& drawing, std::size_t p, PanelAxis which, const PanelRoom& room,
                GnuplotText& script) {
  const bool is_x = which == PanelAxis::x;
  const char* const name = is_x ? "x" : "y";
  const ChartPanel& panel = drawing.panels[p];
  const ChartAxis& axis = is_x ? panel.x : panel.y;
  const AxisRange& range = is_x ? drawing.ranges[p].x : drawing.ranges[p].y;
  script.say("set {}label {}", name, gnuplot_lines(lines_of(visible(axis.label), is_x ? room.width : room.height)));
  script.say("{} logscale {}", is_logarithmic(axis) ? "set" : "unset", name);
  script.say("set {}range [{}:{}]", name, gnuplot_number(range.low), gnuplot_number(range.high));
  script.say("set {}tics {}nomirror autofreq", name, drawing.is_terminal() ? "" : "out ");
  // Without the blank that gnuplot leaves for a sign, which shifts numbers from their tics.
  script.say("set format {} '%h'", name);
  if (!axis.categories.empty()) return write_categories(which, axis, room, script);
  const AxisTics tics = tics_of(panel, which, range, room);
  if (tics.step) script.say("set {}tics {}", name, gnuplot_number(*tics.step));
  write_places(name, tics.places, script);
}

void write_colour_axis(const ChartPanel& panel, GnuplotText& script) {
  script.say("set cblabel {}", gnuplot_string(panel.z->label));
  script.say("{} logscale cb", is_logarithmic(*panel.z) ? "set" : "unset");
  const auto cells = std::find_if(panel.series.begin(), panel.series.end(),
                                  [](const ChartSeries& s) { return s.mark == ChartMark::cells; });
  if (cells == panel.series.end()) return;
  const AxisRange range = colour_range_of(*panel.z, *cells);
  script.say("set cbrange [{}:{}]", gnuplot_number(range.low), gnuplot_number(range.high));
  script.say("set format cb '%h'");
  script.say("set cbtics autofreq");
  if (is_logarithmic(*panel.z)) write_places("cb", logarithmic_tics(range), script);
}

void write_axes(const ChartDrawing& drawing, std::size_t p, const PanelRoom& room, GnuplotText& script) {
  script.say("unset arrow");
  script.say("unset label");
  write_axis(drawing, p, PanelAxis::x, room, script);
  write_axis(drawing, p, PanelAxis::y, room, script);
  if (drawing.panels[p].z) write_colour_axis(drawing.panels[p], script);
}

// ---- In a terminal.

/// Characters are narrower than high, and room is counted in heights.
PanelRoom terminal_room(const DrawingStyle& style) {
  constexpr double character = 0.55, left_of_plot = 12, legend_and_labels = 8;
  return {character * (style.columns - left_of_plot), style.rows - legend_and_labels};
}

/// The chart's title and the text above a panel; the meaning of the vertical axis, which has room for short words only;
/// for cells the number that each digit stands for.
std::vector<std::string> terminal_title(const ChartDrawing& drawing, std::size_t p, const std::string& title) {
  const ChartPanel& panel = drawing.panels[p];
  std::vector<std::string> lines = {panel.title.empty() ? title : fmt::format("{}: {}", title, panel.title)};
  for (const ChartSeries& s : panel.series) {
    if (s.mark != ChartMark::cells) continue;
    const AxisRange range = colour_range_of(*panel.z, s);
    lines.push_back(fmt::format("{}: {:.3g} (0) to {:.3g} (9){}", panel.z->label, range.low, range.high,
                                is_logarithmic(*panel.z) ? ", logarithmic" : ""));
  }
  lines.push_back(fmt::format("\u2191 {}", panel.y.label));
  return lines;
}

void write_for_terminal(const ChartDrawing& drawing, const Chart& chart, GnuplotText& script) {
  const DrawingStyle& style = drawing.style;
  // Two lines are the prompt's and the caption's.
  script.say("set terminal dumb size {},{} noenhanced {}", style.columns, std::max(10, style.rows - 2),
             style.colour ? "ansirgb" : "mono");
  script.say("set key outside below center horizontal width 2");
  script.say("set tics nomirror");
  for (std::size_t p = 0; p < drawing.panels.size(); ++p) {
    script.say("set title {}", gnuplot_lines(terminal_title(drawing, p, chart.title)));
    write_axes(drawing, p, terminal_room(style), script);
    script.say("unset ylabel");
    script.say("unset colorbox");
    write_marks(drawing, p, script);
  }
}

// ---- On paper.

/// Sizes of fonts are in points where Cairo draws, which assumes 96 units to an inch; those of a PDF are
/// points themselves.
constexpr double points_per_unit = 72.0 / 96;
/// Factor by which points have the same size as in an SVG.
constexpr double cairo_points = 1.4;

class PaperScript {
 public:
  PaperScript(const ChartDrawing& drawing, const DrawingLayout& layout, GnuplotText& script)
      : drawing_(drawing), layout_(layout), script_(script) {}

  void write(const std::string& name) {
    write_terminal(name);
    script_.say("set multiplot");
    write_blank();
    place({0, 0, layout_.width, layout_.height});
    write_text(layout_.title, ":Bold");
    write_text(layout_.caption, "");
    script_.say("plot NaN notitle");
    for (std::size_t p = 0; p < layout_.panels.size(); ++p) {
      write_legend(layout_.legends[p], layout_.panels[p].legend);
      write_panel(p);
    }
    write_legend(layout_.common_legend, layout_.common_legend_area);
    script_.say("unset multiplot");
  }

 private:
  std::string font_setting(double size, std::string_view weight) const {
    if (drawing_.style.kind == DrawingKind::svg) return fmt::format("font 'sans-serif{},{:.2f}'", weight, size);
    return fmt::format("font 'Sans{},{:.2f}'", weight, points_per_unit * size);
  }

  void write_terminal(const std::string& name) {
    const DrawingStyle& style = drawing_.style;
    const std::string font = font_setting(drawing_.font, "");
    const std::string paper =
        style.theme == DrawingTheme::page ? "" : fmt::format(" background rgb '{}'", drawing_.colours.paper);
    switch (style.kind) {
      case DrawingKind::svg:
        script_.say("set terminal svg size {:.0f},{:.0f} noenhanced {} name '{}'{}", layout_.width, layout_.height,
                    font, gnuplot_identifier(name), paper);
        break;
      case DrawingKind::png:
        script_.say("set terminal pngcairo size {:.0f},{:.0f} noenhanced {} fontscale {} linewidth {} pointscale {}{}",
                    layout_.width * style.pixels, layout_.height * style.pixels, font, style.pixels, style.pixels,
                    cairo_points * style.pixels, paper);
        break;
      case DrawingKind::pdf:
        script_.say(
            "set terminal pdfcairo size {:.4f}in,{:.4f}in noenhanced {} fontscale {} linewidth {} pointscale {}{}",
            layout_.width / 96, layout_.height / 96, font, points_per_unit, points_per_unit, cairo_points, paper);
        break;
      case DrawingKind::terminal:
        break;
    }
  }

  void place(const DrawingArea& area) {
    script_.say("set origin {:.5f},{:.5f}", area.left / layout_.width, area.bottom / layout_.height);
    script_.say("set size {:.5f},{:.5f}", area.width / layout_.width, area.height / layout_.height);
  }

  /// Settings for a plot that contains nothing but words.
  void write_blank() {
    script_.say(
        "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset title\nunset grid\nunset arrow\nunset label");
    script_.say("unset logscale\nunset colorbox\nunset key\nset margins 0,0,0,0\nset xrange [0:1]\nset yrange [0:1]");
  }

  void write_text(const PlacedText& text, const std::string& weight) {
    double top = text.top;
    for (const std::string& line : text.lines) {
      top -= line_height(text.font);
      script_.say("set label {} at screen {:.5f}, {:.5f} left front {} textcolor rgb '{}'", gnuplot_string(line),
                  text.left / layout_.width, (top + 0.45 * text.font) / layout_.height, font_setting(text.font, weight),
                  drawing_.colours.ink);
    }
  }

  void write_legend(const DrawingLegend& legend, const DrawingArea& area) {
    if (legend.entries.empty()) return;
    write_blank();
    place(area);
    script_.say(
        "set key inside center center horizontal maxcols {:.0f} noautotitle Left reverse samplen 2.6 spacing 1.1 "
        "width 0 textcolor rgb '{}'",
        legend_columns(legend, area.width, drawing_.font), drawing_.colours.ink);
    script_.say("plot \\\n  {}", fmt::join(legend.entries, ", \\\n  "));
  }

  void write_panel(std::size_t p) {
    const ChartPanel& panel = drawing_.panels[p];
    const PanelPlace& placed = layout_.panels[p];
    const DrawingPalette& colours = drawing_.colours;
    script_.say("set border 3 lc rgb '{}' lw {:.3g}", colours.ink, 0.9 * drawing_.line);
    script_.say("set tics out nomirror textcolor rgb '{}'", colours.ink);
    script_.say("set grid lt 1 lc rgb '{0}' lw {1:.3g} dt solid, lt 1 lc rgb '{0}' lw {1:.3g} dt solid", colours.grid,
                0.6 * drawing_.line);
    script_.say("unset margins\nunset key");
    write_axes(drawing_, p, placed.room, script_);
    script_.say("set xlabel textcolor rgb '{0}'\nset ylabel textcolor rgb '{0}'", colours.ink);
    if (placed.title.empty()) {
      script_.say("unset title");
    } else {
      script_.say("set title {} textcolor rgb '{}'", gnuplot_lines(placed.title), colours.ink);
    }
    if (panel.z) write_colour_scale();
    place(placed.plot);
    write_marks(drawing_, p, script_);
  }

  void write_colour_scale() {
    script_.say("unset grid");
    script_.say("set palette defined {}", heat_colours);
    script_.say("set colorbox noborder");
    script_.say("set cbtics textcolor rgb '{}'", drawing_.colours.ink);
    script_.say("set cblabel textcolor rgb '{}'", drawing_.colours.ink);
    script_.say("set style textbox opaque noborder fillcolor rgb '#ffffff' margins 0.4,0.2");
  }

  const ChartDrawing& drawing_;
  const DrawingLayout& layout_;
  GnuplotText& script_;
};

}  // namespace

std::string gnuplot_script(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  require_drawable(chart);
  const ChartDrawing drawing(chart.panels, style);
  GnuplotText script;
  script.say("# {}", visible(chart.title));
  script.say("# {}", visible(made_by));
  script.say("set encoding utf8");
  write_data_blocks(drawing, script);
  if (drawing.is_terminal()) {
    write_for_terminal(drawing, chart, script);
  } else {
    const DrawingLayout layout = layout_of(drawing, chart.title, chart.caption, chart.columns);
    PaperScript(drawing, layout, script).write(chart.name);
  }
  return script.take();
}

}  // namespace specdec::render
