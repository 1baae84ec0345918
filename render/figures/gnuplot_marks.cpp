#include "render/figures/gnuplot_marks.hpp"

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace specdec::render {
namespace {

// ---- Styles: the text after "with lines" and so on.

// Over cells, lines are drawn in black below and in white above, and so are visible on any colour.
constexpr const char* below_cells_line = "#000000";
constexpr const char* over_cells_line = "#ffffff";
/// The extra width of the lower line.
constexpr double rim = 2;

std::string line_style(const ChartDrawing& drawing, const DrawnSeries& drawn) {
  if (drawing.is_terminal()) return fmt::format("lt {} lc rgb '{}'", drawn.line_type, drawn.colour);
  return fmt::format("lc rgb '{}' lw {:.3g} dt {}", drawn.colour, drawn.line_width, drawn.dash);
}

std::string point_style(const DrawnSeries& drawn) {
  return fmt::format("pt {} ps {:.3g}", point_of_number(drawn.look.number), drawn.point_size);
}

std::string outline(std::string_view colour, double width) {
  return fmt::format("lc rgb '{0}' lw {1:.3g} fs empty border rgb '{0}'", colour, width);
}

std::string fill_style(const ChartDrawing& drawing, const DrawnSeries& drawn) {
  const ChartSeries& s = drawn.series;
  if (s.mark == ChartMark::band || (s.mark == ChartMark::box && s.role == ChartRole::reference))
    return fmt::format("fc rgb '{}' fs transparent solid {} noborder", drawn.colour, band_opacity);
  if (s.mark == ChartMark::box && s.role == ChartRole::highlight) return outline(drawn.colour, drawn.line_width);
  return fmt::format("fc rgb '{}' lw {:.3g} fs transparent pattern {} border rgb '{}'", drawn.colour,
                     0.8 * drawing.line, pattern_of_number(drawn.look.number), drawing.colours.ink);
}

/// Marks on a line: all of a short one, some of a long one.
std::size_t point_interval(const ChartSeries& s) { return std::max<std::size_t>(1, s.x.size() / 12); }

// ---- Marks.

/// Collects the arguments of "plot", and writes at once what must precede it.
class PanelMarks {
 public:
  PanelMarks(const ChartDrawing& drawing, std::size_t panel, GnuplotText& script)
      : drawing_(drawing), panel_(panel), script_(script) {}

  void add(std::size_t series) {
    const DrawnSeries drawn = drawn_series(drawing_, panel_, series);
    switch (drawn.series.mark) {
      case ChartMark::line:
        return add_line(drawn);
      case ChartMark::steps:
        return add("{} using 1:2 with steps {} {}", drawn.data, line_style(drawing_, drawn), title_of(drawn));
      case ChartMark::points:
        return add_points(drawn);
      case ChartMark::bars:
        return add_bars(drawn);
      case ChartMark::band:
        return add_band(drawn);
      case ChartMark::box:
        return add_box(drawn);
      case ChartMark::cells:
        return add_cells(drawn);
      case ChartMark::horizontal:
        return add("{} using 1:2 with lines {} {}", drawn.data, line_style(drawing_, drawn), title_of(drawn));
      case ChartMark::vertical:
        return add_vertical(drawn);
      case ChartMark::text:
        return say_text(drawn);
    }
  }

  const std::vector<std::string>& elements() const { return elements_; }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> form, Values&&... values) {
    elements_.push_back(fmt::format(form, std::forward<Values>(values)...));
  }

  const ChartPanel& panel() const { return drawing_.panels[panel_]; }

  /// A terminal has no legend except gnuplot's own.
  std::string title_of(const DrawnSeries& drawn) const {
    if (!drawing_.is_terminal() || !drawn.look.in_legend) return "notitle";
    const ChartSeries& s = drawn.series;
    // All of these lines use the same characters.
    const bool one_vertical = s.mark == ChartMark::vertical && s.x.size() == 1;
    return "title " + gnuplot_string(one_vertical ? fmt::format("{} at {:.4g}", s.name, s.x.front()) : s.name);
  }

  void add_line(const DrawnSeries& drawn) {
    if (drawn.over_cells) {
      add("{} using 1:2 with lines lc rgb '{}' lw {:.3g} notitle", drawn.data, below_cells_line,
          drawn.line_width + rim * drawing_.line);
      add("{} using 1:2 with lines lc rgb '{}' lw {:.3g} dt {} notitle", drawn.data, over_cells_line, drawn.line_width,
          drawn.dash);
    } else if (drawn.series.role == ChartRole::reference || drawing_.is_terminal()) {
      add("{} using 1:2 with lines {} {}", drawn.data, line_style(drawing_, drawn), title_of(drawn));
    } else {
      add("{} using 1:2 with linespoints {} {} pointinterval {} {}", drawn.data, line_style(drawing_, drawn),
          point_style(drawn), point_interval(drawn.series), title_of(drawn));
    }
  }

  /// gnuplot's own error bars blank the area behind their points.
  void add_error_bars(const DrawnSeries& drawn, const std::string& colour) {
    if (drawn.series.low.empty()) return;
    add("{} using 1:3:(0):($4-$3) with vectors heads size graph 0.006,90 lc rgb '{}' lw {:.3g} notitle", drawn.data,
        colour, drawing_.line);
  }

  void add_points(const DrawnSeries& drawn) {
    add_error_bars(drawn, drawn.colour);
    add("{} using 1:2 with points lc rgb '{}' {} {}", drawn.data, drawn.colour, point_style(drawn), title_of(drawn));
  }

  void add_bars(const DrawnSeries& drawn) {
    add("{} using 1:2:({:.6g}) with boxes {} {}", drawn.data, bar_width(panel()), fill_style(drawing_, drawn),
        title_of(drawn));
    add_error_bars(drawn, drawing_.colours.ink);
  }

  void add_band(const DrawnSeries& drawn) {
    if (!drawing_.is_terminal())
      return add("{} using 1:2:3 with filledcurves {} {}", drawn.data, fill_style(drawing_, drawn), title_of(drawn));
    add("{} using 1:2 with lines {} {}", drawn.data, line_style(drawing_, drawn), title_of(drawn));
    add("{} using 1:3 with lines {} notitle", drawn.data, line_style(drawing_, drawn));
  }

  void add_box(const DrawnSeries& drawn) {
    const auto add_styled = [&](const std::string& style, const std::string& title) {
      add("{} using 1:2:3:4:5:6 with boxxyerror {} {}", drawn.data, style, title);
    };
    if (!drawn.over_cells) return add_styled(fill_style(drawing_, drawn), title_of(drawn));
    add_styled(outline(below_cells_line, drawn.line_width + rim * drawing_.line), "notitle");
    add_styled(outline(over_cells_line, drawn.line_width), "notitle");
  }

  /// Cells are one picture, on separate axes that count columns and rows: they run beside x and y, whatever their
  /// scale.
  void add_cells(const DrawnSeries& drawn) {
    if (drawing_.is_terminal()) return add("{} using 1:2:3 with labels notitle", drawn.data);
    const CellGrid grid = grid_of(panel(), drawn.series);
    const PanelRanges& shown = drawing_.ranges[panel_];
    const auto say_range = [&](std::string_view axis, const AxisRange& range) {
      script_.say("set {}range [{}:{}]", axis, gnuplot_number(range.low), gnuplot_number(range.high));
    };
    say_range("x2", counted_cells(grid.x_edges, panel().x.scale, shown.x));
    say_range("y2", counted_cells(grid.y_edges, panel().y.scale, shown.y));
    add("{} using 1:2:3 axes x2y2 with image notitle", drawn.data);
  }

  void add_vertical(const DrawnSeries& drawn) {
    for (const double x : drawn.series.x) {
      script_.say("set arrow from first {0}, graph 0 to first {0}, graph 1 nohead front {1}", gnuplot_number(x),
                  line_style(drawing_, drawn));
    }
    if (title_of(drawn) != "notitle") add("NaN with points pt '|' lc rgb '{}' {}", drawn.colour, title_of(drawn));
  }

  void say_text(const DrawnSeries& drawn) {
    const ChartSeries& s = drawn.series;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!std::isfinite(s.x[i]) || !std::isfinite(s.y[i])) continue;
      script_.say("set label {} at first {}, {} center front textcolor rgb '{}'{}", gnuplot_string(s.labels[i]),
                  gnuplot_number(s.x[i]), gnuplot_number(s.y[i]),
                  drawn.over_cells ? below_cells_line : drawing_.colours.ink, drawn.over_cells ? " boxed" : "");
    }
  }

  const ChartDrawing& drawing_;
  std::size_t panel_;
  GnuplotText& script_;
  std::vector<std::string> elements_;
};

int depth_of(ChartMark mark) {
  return mark == ChartMark::cells ? 0 : mark == ChartMark::band ? 1 : mark == ChartMark::box ? 2 : 3;
}

}  // namespace

void write_marks(const ChartDrawing& drawing, std::size_t panel, GnuplotText& script) {
  PanelMarks marks(drawing, panel, script);
  const std::vector<ChartSeries>& series = drawing.panels[panel].series;
  for (int depth = 0; depth < 4; ++depth) {
    for (std::size_t s = 0; s < series.size(); ++s) {
      if (depth_of(series[s].mark) == depth) marks.add(s);
    }
  }
  if (marks.elements().empty()) return script.say("plot \\\n  NaN notitle");
  script.say("plot \\\n  {}", fmt::join(marks.elements(), ", \\\n  "));
}

std::string legend_entry(const ChartDrawing& drawing, const DrawnSeries& drawn, std::string_view name) {
  const std::string title = "title " + gnuplot_string(name);
  const std::string& ink = drawing.colours.ink;
  switch (drawn.series.mark) {
    case ChartMark::line:
      if (drawn.over_cells)
        return fmt::format("NaN with lines lc rgb '{}' lw {:.3g} dt {} {}", ink, drawn.line_width, drawn.dash, title);
      if (drawn.series.role == ChartRole::reference) break;
      return fmt::format("NaN with linespoints {} {} {}", line_style(drawing, drawn), point_style(drawn), title);
    case ChartMark::points:
      return fmt::format("NaN with points lc rgb '{}' {} {}", drawn.colour, point_style(drawn), title);
    case ChartMark::box:
      if (drawn.over_cells) return fmt::format("NaN with boxes {} {}", outline(ink, drawn.line_width), title);
      return fmt::format("NaN with boxes {} {}", fill_style(drawing, drawn), title);
    case ChartMark::bars:
    case ChartMark::band:
      return fmt::format("NaN with boxes {} {}", fill_style(drawing, drawn), title);
    default:
      break;
  }
  return fmt::format("NaN with lines {} {}", line_style(drawing, drawn), title);
}

}  // namespace specdec::render
