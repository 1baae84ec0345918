#include "cli/figures/gnuplot_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "cli/figures/chart_looks.hpp"
#include "cli/step_figure.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void cover(double value, AxisScale scale) {
    if (!std::isfinite(value) || (scale == AxisScale::logarithmic && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void cover(const std::vector<double>& values, AxisScale scale) {
    for (const double value : values) cover(value, scale);
  }
};

bool is_log(const ChartAxis& axis) { return axis.scale == AxisScale::logarithmic; }

/// Characters as a reader counts them.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

/// Lines of at most so many characters, broken at blanks.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string_view word : split(text, ' ')) {
    if (!lines.empty() && characters(lines.back()) + 1 + characters(word) <= width) {
      lines.back() += fmt::format(" {}", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

/// Edges between the places of cells, and half a cell beyond the outer ones.
std::vector<double> edges_of(const std::vector<double>& places, AxisScale scale) {
  const bool log = scale == AxisScale::logarithmic;
  const auto to = [log](double value) { return log ? std::log(value) : value; };
  const auto from = [log](double value) { return log ? std::exp(value) : value; };
  std::vector<double> edges = {from(1.5 * to(places[0]) - 0.5 * to(places[1]))};
  for (std::size_t i = 1; i < places.size(); ++i) edges.push_back(from((to(places[i - 1]) + to(places[i])) / 2));
  edges.push_back(from(1.5 * to(places.back()) - 0.5 * to(places[places.size() - 2])));
  return edges;
}

struct CellGrid {
  std::vector<double> x_edges;
  std::vector<double> y_edges;
};

CellGrid grid_of(const ChartPanel& panel, const ChartSeries& s) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < s.x.size() && (i == 0 || s.y[i] == s.y[0]); ++i) x.push_back(s.x[i]);
  for (std::size_t i = 0; i < s.y.size(); i += x.size()) y.push_back(s.y[i]);
  return {edges_of(x, panel.x.scale), edges_of(y, panel.y.scale)};
}

/// What the marks cover of both axes.
struct PanelExtent {
  Extent x;
  Extent y;
  bool has_bars = false;
  bool has_cells = false;
};

/// The least distance of different bars.
double bar_spacing(const ChartPanel& panel) {
  std::set<double> places;
  for (const ChartSeries& s : panel.series) {
    if (s.mark != ChartMark::bars) continue;
    for (const double x : s.x) {
      if (std::isfinite(x)) places.insert(x);
    }
  }
  double spacing = std::numeric_limits<double>::infinity();
  for (auto place = places.begin(); place != places.end() && std::next(place) != places.end(); ++place)
    spacing = std::min(spacing, *std::next(place) - *place);
  return std::isfinite(spacing) ? spacing : 1;
}

PanelExtent extent_of(const ChartPanel& panel) {
  PanelExtent extent;
  for (const ChartSeries& s : panel.series) {
    extent.x.cover(s.x, panel.x.scale);
    extent.x.cover(s.x_low, panel.x.scale);
    extent.x.cover(s.x_high, panel.x.scale);
    extent.y.cover(s.y, panel.y.scale);
    extent.y.cover(s.low, panel.y.scale);
    extent.y.cover(s.high, panel.y.scale);
    if (s.mark == ChartMark::bars) extent.has_bars = true;
    if (s.mark == ChartMark::cells) {
      extent.has_cells = true;
      const CellGrid grid = grid_of(panel, s);
      extent.x.cover(grid.x_edges, panel.x.scale);
      extent.y.cover(grid.y_edges, panel.y.scale);
    }
  }
  if (extent.has_bars) {
    const double half = bar_spacing(panel) / 2;
    extent.x.low -= half;
    extent.x.high += half;
    extent.y.cover(0, panel.y.scale);
  }
  return extent;
}

/// The range that an axis shows: what it asks for, else that of the data, with room at the ends of y.
std::pair<double, double> range_of(const ChartAxis& axis, Extent data, bool with_room) {
  if (!axis.categories.empty()) return {-0.5, static_cast<double>(axis.categories.size()) - 0.5};
  if (!(data.low <= data.high)) data = {is_log(axis) ? 1.0 : 0.0, is_log(axis) ? 10.0 : 1.0};
  if (data.low == data.high) {
    data = is_log(axis) ? Extent{data.low / 2, data.high * 2}
                        : Extent{data.low - std::max(0.5, std::abs(data.low) / 10),
                                 data.high + std::max(0.5, std::abs(data.high) / 10)};
  }
  if (with_room && is_log(axis)) {
    const double room = std::pow(data.high / data.low, 0.04);
    data = {data.low / room, data.high * room};
  } else if (with_room) {
    const bool from_zero = data.low >= 0 && data.low < 0.3 * data.high;
    const double room = 0.04 * (data.high - data.low);
    data = {from_zero ? 0 : data.low - room, data.high + room};
  }
  const double low = axis.low.value_or(data.low), high = axis.high.value_or(data.high);
  if (low < high) return {low, high};
  return axis.low ? std::pair{low, is_log(axis) ? low * 10 : low + 1}
                  : std::pair{is_log(axis) ? high / 10 : high - 1, high};
}

// ------------------------------------------------------------------------------------------------------- the script

constexpr const char* dashes[] = {"solid", "(9,4)", "(2,3)", "(9,3,2,3)", "(16,5)", "(5,3,2,3,2,3)", "(4,2)"};
constexpr int points[] = {7, 5, 9, 13, 11, 6, 4};
constexpr int patterns[] = {3, 4, 5, 1, 6, 7, 2};
constexpr double band_opacity = 0.22;

/// The item of a look's number. Beyond the last one it begins again one further on, so that who has the colour of
/// another has another dash.
template <class Item, std::size_t Size>
const Item& nth(const Item (&items)[Size], int number) {
  const auto n = static_cast<std::size_t>(number);
  return items[(n + n / Size) % Size];
}

/// Of Matplotlib's viridis at even distances, published as CC0: light grows steadily, so that it is legible in grey.
constexpr const char* heat_colours =
    "(0 '#440154', 1 '#482878', 2 '#3e4a89', 3 '#31688e', 4 '#26838f', 5 '#1f9d8a', 6 '#6cce5a', 7 '#b6de2b', "
    "8 '#fee825')";

/// A part of the drawing, in units of 1/96 inch from its lower left corner.
struct DrawingArea {
  double left = 0;
  double bottom = 0;
  double width = 0;
  double height = 0;
};

class ScriptWriter {
 public:
  ScriptWriter(const Chart& chart, const DrawingStyle& style)
      : chart_(chart),
        style_(style),
        colours_(palette_of(style.theme)),
        looks_(looks_of(chart)),
        shared_legend_(shares_legend(chart, looks_)),
        font_(std::max(9.5, style.width / 56)),
        line_(font_ / 12) {}

  std::string script(std::string_view made_by) {
    say("# {}", visible(chart_.title));
    say("# {}", visible(made_by));
    say("set encoding utf8");
    write_data();
    is_terminal() ? write_for_terminal() : write_for_paper();
    return std::move(script_);
  }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> form, Values&&... values) {
    fmt::format_to(std::back_inserter(script_), form, std::forward<Values>(values)...);
    script_ += '\n';
  }

  bool is_terminal() const { return style_.kind == DrawingKind::terminal; }

  // ------------------------------------------------------------------------------------------------------- the data

  static std::string block_name(std::size_t panel, std::size_t series) {
    return fmt::format("$panel{}_series{}", panel + 1, series + 1);
  }

  /// What gnuplot takes for a name.
  static std::string identifier(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
  }

  static std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "NaN"; }

  void write_data() {
    for (std::size_t p = 0; p < chart_.panels.size(); ++p) {
      const PanelExtent extent = extent_of(chart_.panels[p]);
      ranges_.push_back(
          {range_of(chart_.panels[p].x, extent.x, false), range_of(chart_.panels[p].y, extent.y, !extent.has_cells)});
      for (std::size_t s = 0; s < chart_.panels[p].series.size(); ++s) write_block(p, s);
    }
  }

  void write_block(std::size_t p, std::size_t index) {
    const ChartPanel& panel = chart_.panels[p];
    const ChartSeries& s = panel.series[index];
    if (s.mark == ChartMark::vertical || s.mark == ChartMark::text) return;
    say("{} << END_OF_DATA", block_name(p, index));
    switch (s.mark) {
      case ChartMark::horizontal:
        for (const double y : s.y) {
          const auto [left, right] = ranges_[p].first;
          say("{} {}\n{} {}\n", number(left), number(y), number(right), number(y));
        }
        break;
      case ChartMark::band:
        write_band(p, s);
        break;
      case ChartMark::box:
        write_boxes(p, s);
        break;
      case ChartMark::cells:
        write_cells(panel, s);
        break;
      default:
        write_points(p, s);
        break;
    }
    say("END_OF_DATA");
  }

  /// An end of a mark within the panel: where it is infinite, or no place of a logarithmic axis, that of the axis.
  static double end_within(double value, const std::pair<double, double>& range, const ChartAxis& axis) {
    if (std::isnan(value)) return value;
    if (value == std::numeric_limits<double>::infinity()) return range.second;
    if (value == -std::numeric_limits<double>::infinity() || (is_log(axis) && value <= 0)) return range.first;
    return value;
  }

  void write_points(std::size_t p, const ChartSeries& s) {
    const ChartPanel& panel = chart_.panels[p];
    const double shift = s.mark == ChartMark::bars ? bar_shift(panel, s) : 0;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (s.low.empty()) {
        say("{} {}", number(s.x[i] + shift), number(s.y[i]));
      } else {
        say("{} {} {} {}", number(s.x[i] + shift), number(s.y[i]),
            number(end_within(s.low[i], ranges_[p].second, panel.y)),
            number(end_within(s.high[i], ranges_[p].second, panel.y)));
      }
    }
  }

  /// Blank lines part the pieces between gaps.
  void write_band(std::size_t p, const ChartSeries& s) {
    const ChartPanel& panel = chart_.panels[p];
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const double low = end_within(s.low[i], ranges_[p].second, panel.y);
      const double high = end_within(s.high[i], ranges_[p].second, panel.y);
      if (std::isfinite(s.x[i]) && std::isfinite(low) && std::isfinite(high)) {
        say("{} {} {}", number(s.x[i]), number(low), number(high));
      } else {
        say("");
      }
    }
  }

  void write_boxes(std::size_t p, const ChartSeries& s) {
    const ChartPanel& panel = chart_.panels[p];
    const auto& [x_range, y_range] = ranges_[p];
    for (std::size_t i = 0; i < s.x_low.size(); ++i) {
      const double left = end_within(s.x_low[i], x_range, panel.x), right = end_within(s.x_high[i], x_range, panel.x);
      const double low = end_within(s.low[i], y_range, panel.y), high = end_within(s.high[i], y_range, panel.y);
      say("{} {} {} {} {} {}", number(left), number(low), number(left), number(right), number(low), number(high));
    }
  }

  /// Column, row and colour; in a terminal centre and a digit.
  void write_cells(const ChartPanel& panel, const ChartSeries& s) {
    const std::size_t columns = grid_of(panel, s).x_edges.size() - 1;
    Extent z;
    z.cover(s.z, panel.z->scale);
    const double low = panel.z->low.value_or(z.low), high = panel.z->high.value_or(z.high);
    for (std::size_t i = 0; i < s.z.size(); ++i) {
      if (is_terminal()) {
        if (!std::isfinite(s.z[i])) continue;
        const bool log = is_log(*panel.z);
        const double part = log ? std::log(s.z[i] / low) / std::log(high / low) : (s.z[i] - low) / (high - low);
        say("{} {} {}", number(s.x[i]), number(s.y[i]), std::clamp(static_cast<int>(10 * part), 0, 9));
      } else {
        say("{} {} {}", i % columns, i / columns, number(s.z[i]));
      }
    }
  }

  /// Cells are one picture, on axes of their own that count columns and rows: they run beside x and y, of whatever
  /// scale.
  void say_cell_axes(const ChartPanel& panel, const ChartSeries& s, std::size_t p) {
    const CellGrid grid = grid_of(panel, s);
    const auto counted = [this](const std::vector<double>& edges, AxisScale scale, std::pair<double, double> shown,
                                std::string_view axis) {
      const auto to = [scale](double value) { return scale == AxisScale::logarithmic ? std::log(value) : value; };
      const double first = to(edges.front());
      const double size = (to(edges.back()) - first) / static_cast<double>(edges.size() - 1);
      say("set {}range [{}:{}]", axis, number((to(shown.first) - first) / size - 0.5),
          number((to(shown.second) - first) / size - 0.5));
    };
    counted(grid.x_edges, panel.x.scale, ranges_[p].first, "x2");
    counted(grid.y_edges, panel.y.scale, ranges_[p].second, "y2");
  }

  static double bar_width(const ChartPanel& panel) {
    const auto count = std::count_if(panel.series.begin(), panel.series.end(),
                                     [](const ChartSeries& s) { return s.mark == ChartMark::bars; });
    return 0.84 * bar_spacing(panel) / static_cast<double>(std::max<std::ptrdiff_t>(count, 1));
  }

  /// Bars of several series at one place stand side by side.
  static double bar_shift(const ChartPanel& panel, const ChartSeries& s) {
    double count = 0, before = 0;
    for (const ChartSeries& other : panel.series) {
      if (&other == &s) before = count;
      if (other.mark == ChartMark::bars) ++count;
    }
    return (before - (count - 1) / 2) * bar_width(panel);
  }

  // ------------------------------------------------------------------------------------------------------- the marks

  std::string colour_of(const ChartSeries& s, const SeriesLook& look) const {
    if (s.role == ChartRole::reference) return colours_.faded;
    return colours_.data[static_cast<std::size_t>(look.number) % colours_.data.size()];
  }

  double line_width(const ChartSeries& s) const {
    const double width = s.role == ChartRole::reference ? 1.1 : s.role == ChartRole::highlight ? 2.8 : 1.7;
    return width * line_;
  }

  static std::string dash_of(const ChartSeries& s, const SeriesLook& look) {
    if (s.role == ChartRole::reference) return nth(dashes, look.number + 2);
    return s.role == ChartRole::highlight ? "solid" : nth(dashes, look.number);
  }

  std::string line_style(const ChartSeries& s, const SeriesLook& look) const {
    if (is_terminal()) return fmt::format("lt {} lc rgb '{}'", look.number + 1, colour_of(s, look));
    return fmt::format("lc rgb '{}' lw {:.3g} dt {}", colour_of(s, look), line_width(s), dash_of(s, look));
  }

  std::string point_style(const ChartSeries& s, const SeriesLook& look) const {
    const double size = (s.role == ChartRole::highlight ? 0.75 : 0.55) * line_;
    return fmt::format("pt {} ps {:.3g}", nth(points, look.number), size);
  }

  static std::string outline(std::string_view colour, double width) {
    return fmt::format("lc rgb '{0}' lw {1:.3g} fs empty border rgb '{0}'", colour, width);
  }

  std::string fill_style(const ChartSeries& s, const SeriesLook& look) const {
    const std::string colour = colour_of(s, look);
    if (s.mark == ChartMark::band || (s.mark == ChartMark::box && s.role == ChartRole::reference))
      return fmt::format("fc rgb '{}' fs transparent solid {} noborder", colour, band_opacity);
    if (s.mark == ChartMark::box && s.role == ChartRole::highlight) return outline(colour, line_width(s));
    return fmt::format("fc rgb '{}' lw {:.3g} fs transparent pattern {} border rgb '{}'", colour, 0.8 * line_,
                       nth(patterns, look.number), colours_.ink);
  }

  /// Marks on a line: all of a short one, some of a long one.
  static std::size_t point_interval(const ChartSeries& s) { return std::max<std::size_t>(1, s.x.size() / 12); }

  /// gnuplot's own error bars blank what is behind their points.
  void add_error_bars(const ChartSeries& s, const std::string& data, const std::string& colour,
                      std::vector<std::string>& elements) const {
    if (s.low.empty()) return;
    elements.push_back(
        fmt::format("{} using 1:3:(0):($4-$3) with vectors heads size graph 0.006,90 lc rgb '{}' lw {:.3g} "
                    "notitle",
                    data, colour, line_));
  }

  /// What stands behind "plot" for one series.
  void add_elements(std::size_t p, std::size_t index, std::vector<std::string>& elements) {
    const ChartPanel& panel = chart_.panels[p];
    const ChartSeries& s = panel.series[index];
    const SeriesLook& look = looks_[p][index];
    const std::string data = block_name(p, index);
    const std::string title = is_terminal() && look.in_legend && s.mark != ChartMark::cells
                                  ? "title " + gnuplot_string(s.name)
                                  : std::string("notitle");
    const bool over_cells = extent_of(panel).has_cells && !is_terminal();
    switch (s.mark) {
      case ChartMark::line:
        if (over_cells) {
          elements.push_back(fmt::format("{} using 1:2 with lines lc rgb '#000000' lw {:.3g} notitle", data,
                                         line_width(s) + 2 * line_));
          elements.push_back(fmt::format("{} using 1:2 with lines lc rgb '#ffffff' lw {:.3g} dt {} notitle", data,
                                         line_width(s), dash_of(s, look)));
        } else if (s.role == ChartRole::reference || is_terminal()) {
          elements.push_back(fmt::format("{} using 1:2 with lines {} {}", data, line_style(s, look), title));
        } else {
          elements.push_back(fmt::format("{} using 1:2 with linespoints {} {} pointinterval {} {}", data,
                                         line_style(s, look), point_style(s, look), point_interval(s), title));
        }
        break;
      case ChartMark::steps:
        elements.push_back(fmt::format("{} using 1:2 with steps {} {}", data, line_style(s, look), title));
        break;
      case ChartMark::points:
        add_error_bars(s, data, colour_of(s, look), elements);
        elements.push_back(fmt::format("{} using 1:2 with points lc rgb '{}' {} {}", data, colour_of(s, look),
                                       point_style(s, look), title));
        break;
      case ChartMark::bars:
        elements.push_back(
            fmt::format("{} using 1:2:({:.6g}) with boxes {} {}", data, bar_width(panel), fill_style(s, look), title));
        add_error_bars(s, data, colours_.ink, elements);
        break;
      case ChartMark::band:
        if (is_terminal()) {
          elements.push_back(fmt::format("{} using 1:2 with lines {} {}", data, line_style(s, look), title));
          elements.push_back(fmt::format("{} using 1:3 with lines {} notitle", data, line_style(s, look)));
        } else {
          elements.push_back(fmt::format("{} using 1:2:3 with filledcurves {} {}", data, fill_style(s, look), title));
        }
        break;
      case ChartMark::box:
        if (over_cells) {
          elements.push_back(fmt::format("{} using 1:2:3:4:5:6 with boxxyerror {} notitle", data,
                                         outline("#000000", line_width(s) + 2 * line_)));
          elements.push_back(
              fmt::format("{} using 1:2:3:4:5:6 with boxxyerror {} notitle", data, outline("#ffffff", line_width(s))));
          break;
        }
        elements.push_back(fmt::format("{} using 1:2:3:4:5:6 with boxxyerror {} {}", data, fill_style(s, look), title));
        break;
      case ChartMark::cells:
        if (is_terminal()) {
          elements.push_back(fmt::format("{} using 1:2:3 with labels notitle", data));
        } else {
          say_cell_axes(panel, s, p);
          elements.push_back(fmt::format("{} using 1:2:3 axes x2y2 with image notitle", data));
        }
        break;
      case ChartMark::horizontal:
        elements.push_back(fmt::format("{} using 1:2 with lines {} {}", data, line_style(s, look), title));
        break;
      case ChartMark::vertical:
        for (const double x : s.x)
          say("set arrow from first {0}, graph 0 to first {0}, graph 1 nohead front {1}", number(x),
              line_style(s, look));
        if (title != "notitle") elements.push_back(fmt::format("NaN with lines {} {}", line_style(s, look), title));
        break;
      case ChartMark::text:
        for (std::size_t i = 0; i < s.x.size(); ++i) {
          if (!std::isfinite(s.x[i]) || !std::isfinite(s.y[i])) continue;
          say("set label {} at first {}, {} center front textcolor rgb '{}'{}", gnuplot_string(s.labels[i]),
              number(s.x[i]), number(s.y[i]), over_cells ? "#000000" : colours_.ink, over_cells ? " boxed" : "");
        }
        break;
    }
  }

  /// What a series looks like in the legend.
  std::string legend_entry(const ChartSeries& s, const SeriesLook& look, bool over_cells) const {
    const std::string title = "title " + gnuplot_string(s.name);
    switch (s.mark) {
      case ChartMark::line:
        if (over_cells)
          return fmt::format("NaN with lines lc rgb '{}' lw {:.3g} dt {} {}", colours_.ink, line_width(s),
                             dash_of(s, look), title);
        if (s.role == ChartRole::reference) return fmt::format("NaN with lines {} {}", line_style(s, look), title);
        return fmt::format("NaN with linespoints {} {} {}", line_style(s, look), point_style(s, look), title);
      case ChartMark::points:
        return fmt::format("NaN with points lc rgb '{}' {} {}", colour_of(s, look), point_style(s, look), title);
      case ChartMark::box:
        if (over_cells) return fmt::format("NaN with boxes {} {}", outline(colours_.ink, line_width(s)), title);
        return fmt::format("NaN with boxes {} {}", fill_style(s, look), title);
      case ChartMark::bars:
      case ChartMark::band:
        return fmt::format("NaN with boxes {} {}", fill_style(s, look), title);
      default:
        return fmt::format("NaN with lines {} {}", line_style(s, look), title);
    }
  }

  static bool belongs_in_legend(const ChartSeries& s, const SeriesLook& look) {
    return look.in_legend && s.mark != ChartMark::cells && s.mark != ChartMark::text;
  }

  struct Legend {
    std::vector<std::string> entries;
    std::size_t longest = 0;
  };

  void add_to_legend(std::size_t p, Legend& legend) const {
    const ChartPanel& panel = chart_.panels[p];
    const bool over_cells = extent_of(panel).has_cells;
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      if (!belongs_in_legend(panel.series[i], looks_[p][i])) continue;
      std::string entry = legend_entry(panel.series[i], looks_[p][i], over_cells);
      if (std::find(legend.entries.begin(), legend.entries.end(), entry) != legend.entries.end()) continue;
      legend.longest = std::max(legend.longest, characters(visible(panel.series[i].name)));
      legend.entries.push_back(std::move(entry));
    }
  }

  /// The legend of one panel, or of all.
  Legend legend_of(std::size_t p) const {
    Legend legend;
    if (!shared_legend_) {
      add_to_legend(p, legend);
    } else {
      for (std::size_t other = 0; other < chart_.panels.size(); ++other) add_to_legend(other, legend);
    }
    return legend;
  }

  // ---------------------------------------------------------------------------------------------------------- panels

  void write_axis(char name, const ChartAxis& axis, const std::pair<double, double>& range) {
    say("set {}label {}", name, gnuplot_string(axis.label));
    say("{} logscale {}", is_log(axis) ? "set" : "unset", name);
    say("set {}range [{}:{}]", name, number(range.first), number(range.second));
    say("set {}tics {}nomirror autofreq", name, is_terminal() ? "" : "out ");
    // Without the blank for a sign that gnuplot leaves, which moves numbers aside from their tics.
    say("set format {} '%h'", name);
    if (axis.categories.empty()) return;
    std::vector<std::string> tics;
    for (std::size_t i = 0; i < axis.categories.size(); ++i)
      tics.push_back(fmt::format("{} {}", tic_label(axis.categories[i]), i));
    say("set {}tics ({})", name, fmt::join(tics, ", "));
  }

  /// Labels of tics are forms for printf.
  static std::string tic_label(const std::string& text) {
    std::string label;
    for (const char c : text) label += c == '%' ? "%%" : std::string(1, c);
    return gnuplot_string(label);
  }

  /// Tics at whole numbers, where the data have no others.
  void write_whole_tics(char name, const ChartPanel& panel, const std::pair<double, double>& range) {
    const bool is_x = name == 'x';
    const ChartAxis& axis = is_x ? panel.x : panel.y;
    if (!axis.categories.empty()) return;
    std::set<double> places;
    for (const ChartSeries& s : panel.series) {
      const std::vector<double>& values = is_x ? s.x : s.y;
      const bool is_place = s.mark != ChartMark::text && s.mark != ChartMark::vertical;
      if (!is_place || (!is_x && !s.low.empty())) continue;
      for (const double value : values) {
        if (std::isfinite(value)) places.insert(value);
      }
    }
    const auto are_all = [&](auto holds) {
      return !places.empty() && std::all_of(places.begin(), places.end(), holds);
    };
    if (!is_log(axis) && are_all([](double v) { return v == std::round(v); })) {
      if (range.second - range.first <= 10) say("set {}tics 1", name);
    } else if (is_log(axis) && places.size() <= 14 && range.second / range.first > 3 &&
               are_all([](double v) { return std::log2(v) == std::round(std::log2(v)); })) {
      std::vector<std::string> tics;
      for (const double place : places) tics.push_back(number(place));
      say("set {}tics ({})", name, fmt::join(tics, ", "));
    }
  }

  void write_panel_settings(std::size_t p) {
    const ChartPanel& panel = chart_.panels[p];
    say("unset arrow");
    say("unset label");
    write_axis('x', panel.x, ranges_[p].first);
    write_axis('y', panel.y, ranges_[p].second);
    write_whole_tics('x', panel, ranges_[p].first);
    write_whole_tics('y', panel, ranges_[p].second);
    if (!panel.z) return;
    say("set cblabel {}", gnuplot_string(panel.z->label));
    say("{} logscale cb", is_log(*panel.z) ? "set" : "unset");
    say("set cbrange [{}:{}]", panel.z->low ? number(*panel.z->low) : "*",
        panel.z->high ? number(*panel.z->high) : "*");
  }

  void write_plot(std::size_t p) {
    const ChartPanel& panel = chart_.panels[p];
    std::vector<std::string> elements;
    // What covers most of the panel lies below.
    const auto layer = [](const ChartSeries& s) {
      return s.mark == ChartMark::cells ? 0 : s.mark == ChartMark::band ? 1 : s.mark == ChartMark::box ? 2 : 3;
    };
    for (int depth = 0; depth < 4; ++depth) {
      for (std::size_t s = 0; s < panel.series.size(); ++s) {
        if (layer(panel.series[s]) == depth) add_elements(p, s, elements);
      }
    }
    if (elements.empty()) elements.emplace_back("NaN notitle");
    say("plot \\\n  {}", fmt::join(elements, ", \\\n  "));
  }

  // --------------------------------------------------------------------------------------------------- in a terminal

  void write_for_terminal() {
    const int rows = std::max(10, (style_.rows - 2) / 1);
    say("set terminal dumb size {},{} noenhanced {}", style_.columns, rows, style_.colour ? "ansirgb" : "mono");
    say("set key outside below center horizontal");
    say("set tics nomirror");
    for (std::size_t p = 0; p < chart_.panels.size(); ++p) {
      const ChartPanel& panel = chart_.panels[p];
      say("set title {}", gnuplot_string(panel.title.empty() ? chart_.title : panel.title));
      write_panel_settings(p);
      say("unset colorbox");
      write_plot(p);
    }
  }

  // -------------------------------------------------------------------------------------------------------- on paper

  /// In heights of the font; with less, panels stand one below the other.
  static constexpr double narrowest_panel = 18;

  /// Of a bold letter, in widths of a plain one.
  static constexpr double bold_width = 1.15;

  double caption_font() const { return 0.86 * font_; }
  double title_font() const { return 1.15 * font_; }
  double line_height(double font) const { return 1.35 * font; }

  /// How many characters of a font go into a width.
  std::size_t fitting(double width, double font) const {
    return static_cast<std::size_t>(std::max(10.0, width / (0.53 * font)));
  }

  /// Sizes of fonts are in points where Cairo draws.
  static constexpr double points_per_unit = 72.0 / 96;

  std::string font_setting(double size, std::string_view weight) const {
    if (style_.kind == DrawingKind::svg) return fmt::format("font 'sans-serif{},{:.2f}'", weight, size);
    return fmt::format("font 'Sans{},{:.2f}'", weight, points_per_unit * size);
  }

  void write_terminal_setting(double height) {
    const double width = style_.width;
    const std::string paper =
        style_.theme == DrawingTheme::page ? "" : fmt::format(" background rgb '{}'", colours_.paper);
    switch (style_.kind) {
      case DrawingKind::svg:
        say("set terminal svg size {:.0f},{:.0f} noenhanced {} name '{}'{}", width, height, font_setting(font_, ""),
            identifier(chart_.name), paper);
        break;
      case DrawingKind::png:
        say("set terminal pngcairo size {:.0f},{:.0f} noenhanced {} fontscale {} linewidth {} pointscale {}{}",
            width * style_.pixels, height * style_.pixels, font_setting(font_, ""), style_.pixels, style_.pixels,
            style_.pixels, paper);
        break;
      case DrawingKind::pdf:
        say("set terminal pdfcairo size {:.4f}in,{:.4f}in noenhanced {} fontscale 1 linewidth {}{}", width / 96,
            height / 96, font_setting(font_, ""), points_per_unit, paper);
        break;
      case DrawingKind::terminal:
        break;
    }
  }

  std::string at_screen(double x, double y, double height) const {
    return fmt::format("screen {:.5f}, {:.5f}", x / style_.width, y / height);
  }

  void place(const DrawingArea& area, double height) {
    say("set origin {:.5f},{:.5f}", area.left / style_.width, area.bottom / height);
    say("set size {:.5f},{:.5f}", area.width / style_.width, area.height / height);
  }

  /// Settings for a plot that has nothing but words.
  void write_blank() {
    say("unset border\nunset tics\nunset xlabel\nunset ylabel\nunset title\nunset grid\nunset arrow\nunset label");
    say("unset logscale\nunset colorbox\nunset key\nset margins 0,0,0,0\nset xrange [0:1]\nset yrange [0:1]");
  }

  double legend_columns(const Legend& legend, double width) const {
    const double entry = 0.58 * font_ * static_cast<double>(legend.longest) + 4.5 * font_;
    return std::clamp(std::floor(width / entry), 1.0, std::max(1.0, static_cast<double>(legend.entries.size())));
  }

  double legend_height(const Legend& legend, double width) const {
    if (legend.entries.empty()) return 0;
    const double rows = std::ceil(static_cast<double>(legend.entries.size()) / legend_columns(legend, width));
    return (rows * 1.4 + 0.5) * font_;
  }

  void write_legend(const Legend& legend, const DrawingArea& area, double height) {
    if (legend.entries.empty()) return;
    write_blank();
    place(area, height);
    say("set key inside center center horizontal maxcols {:.0f} noautotitle Left reverse samplen 2.6 spacing 1.1 "
        "width 0 textcolor rgb '{}'",
        legend_columns(legend, area.width), colours_.ink);
    say("plot \\\n  {}", fmt::join(legend.entries, ", \\\n  "));
  }

  void write_text_lines(const std::vector<std::string>& lines, double left, double top, double font,
                        const std::string& weight, double height) {
    for (const std::string& line : lines) {
      top -= line_height(font);
      say("set label {} at {} left front {} textcolor rgb '{}'", gnuplot_string(line),
          at_screen(left, top + 0.45 * font, height), font_setting(font, weight), colours_.ink);
    }
  }

  void write_panel(std::size_t p, const DrawingArea& area, double height) {
    const ChartPanel& panel = chart_.panels[p];
    say("set border 3 lc rgb '{}' lw {:.3g}", colours_.ink, 0.9 * line_);
    say("set tics out nomirror textcolor rgb '{}'", colours_.ink);
    say("set grid lt 1 lc rgb '{0}' lw {1:.3g} dt solid, lt 1 lc rgb '{0}' lw {1:.3g} dt solid", colours_.grid,
        0.6 * line_);
    say("unset margins\nunset key");
    write_panel_settings(p);
    say("set xlabel textcolor rgb '{0}'\nset ylabel textcolor rgb '{0}'", colours_.ink);
    if (panel.title.empty()) {
      say("unset title");
    } else {
      say("set title {} textcolor rgb '{}'", gnuplot_string(panel.title), colours_.ink);
    }
    if (panel.z) {
      say("unset grid");
      say("set palette defined {}", heat_colours);
      say("set colorbox noborder");
      say("set cbtics textcolor rgb '{}'", colours_.ink);
      say("set cblabel textcolor rgb '{}'", colours_.ink);
      say("set style textbox opaque noborder fillcolor rgb '#ffffff' margins 0.4,0.2");
    }
    place(area, height);
    write_plot(p);
  }

  void write_for_paper() {
    const double pad = 0.7 * font_;
    const double width = style_.width;
    const auto lines = [&](const std::string& text, double font) {
      return style_.has_words ? lines_of(visible(text), fitting(width - 2 * pad, font)) : std::vector<std::string>{};
    };
    const auto title = lines(chart_.title, bold_width * title_font());
    const auto caption = lines(chart_.caption, caption_font());
    const double title_height = static_cast<double>(title.size()) * line_height(title_font()) + 1.2 * pad;
    const double caption_height = static_cast<double>(caption.size()) * line_height(caption_font()) + 1.2 * pad;

    std::size_t columns = std::min(static_cast<std::size_t>(chart_.columns), chart_.panels.size());
    while (columns > 1 && width / static_cast<double>(columns) < narrowest_panel * font_) --columns;
    const std::size_t rows = (chart_.panels.size() + columns - 1) / columns;
    const double gap = columns > 1 ? 0.8 * font_ : 0;
    const double cell_width = (width - pad) / static_cast<double>(columns);
    const double plot_height = (columns > 2    ? 0.85
                                : columns == 2 ? 0.68
                                : rows > 1     ? 0.44
                                               : 0.54) *
                                   cell_width +
                               3.5 * font_;
    // Of a row the legends of its panels, where they have their own.
    std::vector<double> legends(rows, 0);
    for (std::size_t p = 0; !shared_legend_ && p < chart_.panels.size(); ++p)
      legends[p / columns] = std::max(legends[p / columns], legend_height(legend_of(p), cell_width - gap));
    const Legend common = shared_legend_ ? legend_of(0) : Legend{};
    const double common_height = legend_height(common, width - 2 * pad);
    const double height =
        std::ceil(title_height + static_cast<double>(rows) * plot_height +
                  std::accumulate(legends.begin(), legends.end(), 0.0) + common_height + caption_height);

    write_terminal_setting(height);
    say("set multiplot");
    write_blank();
    place({0, 0, width, height}, height);
    write_text_lines(title, pad, height - 0.6 * pad, title_font(), ":Bold", height);
    write_text_lines(caption, pad, caption_height - 0.4 * pad, caption_font(), "", height);
    say("plot NaN notitle");
    double top = height - title_height;
    for (std::size_t p = 0; p < chart_.panels.size(); ++p) {
      const std::size_t row = p / columns, column = p % columns;
      const double left = pad / 2 + static_cast<double>(column) * cell_width;
      const double bottom = top - plot_height - legends[row];
      if (!shared_legend_) write_legend(legend_of(p), {left, bottom, cell_width - gap, legends[row]}, height);
      write_panel(p, {left, bottom + legends[row], cell_width - gap, plot_height}, height);
      if (column + 1 == columns) top = bottom;
    }
    if (shared_legend_) write_legend(common, {pad, caption_height, width - 2 * pad, common_height}, height);
    say("unset multiplot");
  }

  const Chart& chart_;
  const DrawingStyle& style_;
  const DrawingPalette& colours_;
  std::vector<std::vector<SeriesLook>> looks_;
  bool shared_legend_;
  double font_;
  double line_;
  /// Of x and y of each panel.
  std::vector<std::pair<std::pair<double, double>, std::pair<double, double>>> ranges_;
  std::string script_;
};

}  // namespace

std::string gnuplot_string(std::string_view text) {
  std::string quoted = "'";
  for (const char c : visible(text)) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + '\'';
}

std::string gnuplot_script(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  require_drawable(chart);
  return ScriptWriter(chart, style).script(made_by);
}

}  // namespace specdec::cli
