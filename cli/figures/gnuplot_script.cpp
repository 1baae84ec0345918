#include "cli/figures/gnuplot_script.hpp"

#include <fmt/ranges.h>
#include <algorithm>
#include <vector>

#include "cli/figures/axis_tics.hpp"
#include "cli/figures/chart_drawing.hpp"
#include "cli/figures/drawing_layout.hpp"
#include "cli/figures/gnuplot_data.hpp"
#include "cli/figures/gnuplot_marks.hpp"
#include "cli/figures/gnuplot_text.hpp"
#include "cli/step_figure.hpp"

namespace specdec::cli {
namespace {

// ---- Axes.

void write_axis(const ChartDrawing& drawing, char name, const ChartAxis& axis, const AxisRange& range,
                GnuplotText& script) {
  script.say("set {}label {}", name, gnuplot_string(axis.label));
  script.say("{} logscale {}", is_logarithmic(axis) ? "set" : "unset", name);
  script.say("set {}range [{}:{}]", name, gnuplot_number(range.low), gnuplot_number(range.high));
  script.say("set {}tics {}nomirror autofreq", name, drawing.is_terminal() ? "" : "out ");
  // Without the blank for a sign that gnuplot leaves, which moves numbers aside from their tics.
  script.say("set format {} '%h'", name);
  if (axis.categories.empty()) return;
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < axis.categories.size(); ++i)
    tics.push_back(fmt::format("{} {}", gnuplot_tic_label(axis.categories[i]), i));
  script.say("set {}tics ({})", name, fmt::join(tics, ", "));
}

void write_tics(char name, const AxisTics& tics, GnuplotText& script) {
  if (tics.step) script.say("set {}tics {}", name, gnuplot_number(*tics.step));
  if (tics.places.empty()) return;
  std::vector<std::string> places;
  for (const double place : tics.places) places.push_back(gnuplot_number(place));
  script.say("set {}tics ({})", name, fmt::join(places, ", "));
}

void write_axes(const ChartDrawing& drawing, std::size_t p, GnuplotText& script) {
  const ChartPanel& panel = drawing.panels[p];
  const PanelRanges& ranges = drawing.ranges[p];
  script.say("unset arrow");
  script.say("unset label");
  write_axis(drawing, 'x', panel.x, ranges.x, script);
  write_axis(drawing, 'y', panel.y, ranges.y, script);
  if (panel.x.categories.empty()) write_tics('x', tics_of(panel, PanelAxis::x, ranges.x), script);
  if (panel.y.categories.empty()) write_tics('y', tics_of(panel, PanelAxis::y, ranges.y), script);
  if (!panel.z) return;
  script.say("set cblabel {}", gnuplot_string(panel.z->label));
  script.say("{} logscale cb", is_logarithmic(*panel.z) ? "set" : "unset");
  script.say("set cbrange [{}:{}]", panel.z->low ? gnuplot_number(*panel.z->low) : "*",
             panel.z->high ? gnuplot_number(*panel.z->high) : "*");
}

// ---- In a terminal.

void write_for_terminal(const ChartDrawing& drawing, const Chart& chart, GnuplotText& script) {
  const DrawingStyle& style = drawing.style;
  // Two lines are the prompt's and the caption's.
  script.say("set terminal dumb size {},{} noenhanced {}", style.columns, std::max(10, style.rows - 2),
             style.colour ? "ansirgb" : "mono");
  script.say("set key outside below center horizontal");
  script.say("set tics nomirror");
  for (std::size_t p = 0; p < drawing.panels.size(); ++p) {
    const std::string& title = drawing.panels[p].title;
    script.say("set title {}", gnuplot_string(title.empty() ? chart.title : title));
    write_axes(drawing, p, script);
    script.say("unset colorbox");
    write_marks(drawing, p, script);
  }
}

// ---- On paper.

/// Sizes of fonts are in points where Cairo draws.
constexpr double points_per_unit = 72.0 / 96;

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
      write_panel(p, layout_.panels[p].plot);
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
                    style.pixels, paper);
        break;
      case DrawingKind::pdf:
        script_.say("set terminal pdfcairo size {:.4f}in,{:.4f}in noenhanced {} fontscale 1 linewidth {}{}",
                    layout_.width / 96, layout_.height / 96, font, points_per_unit, paper);
        break;
      case DrawingKind::terminal:
        break;
    }
  }

  void place(const DrawingArea& area) {
    script_.say("set origin {:.5f},{:.5f}", area.left / layout_.width, area.bottom / layout_.height);
    script_.say("set size {:.5f},{:.5f}", area.width / layout_.width, area.height / layout_.height);
  }

  /// Settings for a plot that has nothing but words.
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

  void write_panel(std::size_t p, const DrawingArea& area) {
    const ChartPanel& panel = drawing_.panels[p];
    const DrawingPalette& colours = drawing_.colours;
    script_.say("set border 3 lc rgb '{}' lw {:.3g}", colours.ink, 0.9 * drawing_.line);
    script_.say("set tics out nomirror textcolor rgb '{}'", colours.ink);
    script_.say("set grid lt 1 lc rgb '{0}' lw {1:.3g} dt solid, lt 1 lc rgb '{0}' lw {1:.3g} dt solid", colours.grid,
                0.6 * drawing_.line);
    script_.say("unset margins\nunset key");
    write_axes(drawing_, p, script_);
    script_.say("set xlabel textcolor rgb '{0}'\nset ylabel textcolor rgb '{0}'", colours.ink);
    if (panel.title.empty()) {
      script_.say("unset title");
    } else {
      script_.say("set title {} textcolor rgb '{}'", gnuplot_string(panel.title), colours.ink);
    }
    if (panel.z) write_colour_scale();
    place(area);
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

}  // namespace specdec::cli
