#include <limits>
#include <string>
#include <vector>

#include "render/figures/axis_tics.hpp"
#include "render/figures/chart_drawing.hpp"
#include "render/figures/drawing_text.hpp"
#include "render/figures/gnuplot_text.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::render;

namespace {

ChartPanel panel_of(const std::vector<double>& x, AxisScale scale) {
  return {.x = {.key = "x", .label = "x", .scale = scale},
          .y = {.key = "y", .label = "y"},
          .series = {{.x = x, .y = std::vector<double>(x.size(), 0.5)}}};
}

/// Tics of x where there is much room.
AxisTics tics_over(const std::vector<double>& x, AxisScale scale) {
  return tics_of(panel_of(x, scale), PanelAxis::x, {x.front(), x.back()}, {100, 100});
}

}  // namespace

TEST_CASE("text in a drawing is broken at blanks, within words longer than a line, and not beside =") {
  CHECK(lines_of("one two three", 1000) == std::vector<std::string>{"one two three"});
  CHECK(lines_of("one two three", width_in_ems("one two")) == std::vector<std::string>{"one two", "three"});
  CHECK(lines_of("at c = 0.1", width_in_ems("at c =")) == std::vector<std::string>{"at c =", "0.1"});
  CHECK(lines_of("at c = 0.1", width_in_ems("at c = 0")) == std::vector<std::string>{"at", "c = 0.1"});
  std::string joined;
  for (const std::string& line : lines_of("αβγδ", width_in_ems("αβ"))) {
    CHECK(character_count(line) == 2);
    joined += line;
  }
  CHECK(joined == "αβγδ");
}

TEST_CASE("a name does not end the text of an SVG") {
  CHECK(gnuplot_string("a]]>b's") == "'a]] >b''s'");
}

TEST_CASE("a name that is too long keeps its beginning and its end") {
  CHECK(shortened("mail 1", 100) == "mail 1");
  const std::string name = "summaries of very long mail, 12";
  const std::string cut = shortened(name, 10);
  CHECK(width_in_ems(cut) <= 10);
  CHECK(cut.starts_with("summ"));
  CHECK(cut.find("\u2026") != std::string::npos);
  CHECK(cut.ends_with("12"));
  CHECK(shortened("日本語日本語日本語", 4).find("\u2026") == 3 * 2);
}

TEST_CASE("tics of whole numbers are multiples of what divides all of them, and leave room between their labels") {
  CHECK(tics_over({0, 1, 2, 10}, AxisScale::linear).step == 1);
  CHECK(tics_over({0, 4, 8, 44}, AxisScale::linear).step == 4);
  CHECK(tics_over({0, 1, 200}, AxisScale::linear).step == 20);
  CHECK(*tics_over({0, 0.5, 2}, AxisScale::linear).step == Approx(0.5));
  const ChartPanel narrow = panel_of({0, 1, 10}, AxisScale::linear);
  CHECK(tics_of(narrow, PanelAxis::x, {0, 10}, {7, 100}).step == 5);
}

TEST_CASE("tics of a logarithmic axis are powers of two where the data are, else 1, 2 and 5") {
  CHECK(tics_over({1, 4, 64}, AxisScale::logarithmic).places == std::vector<double>{1, 4, 64});
  CHECK(tics_over({3, 50}, AxisScale::logarithmic).places == std::vector<double>{5, 10, 20, 50});
  CHECK(tics_over({21, 39}, AxisScale::logarithmic).places == std::vector<double>{25, 30, 35});
  CHECK(logarithmic_tics({0.02, 0.1}).size() == 3);
  CHECK(logarithmic_tics({1, 100'000}).empty());
}

TEST_CASE("two lines across a panel have two dashes, and grey is for references") {
  ChartPanel panel = panel_of({1, 2}, AxisScale::linear);
  for (const int colour : {chart_colours::speculation, chart_colours::in_use}) {
    panel.series.push_back(
        {.name = "line", .mark = ChartMark::vertical, .x = {1}, .role = ChartRole::highlight, .colour = colour});
  }
  panel.series.push_back(reference_line(ChartMark::horizontal, "limit", {0.5}));
  panel.series.push_back({.x = {1, 2}, .y = {1, 2}, .colour = chart_colours::count});
  const std::vector<ChartPanel> panels = {panel};
  const ChartDrawing drawing(panels, {});
  CHECK(drawn_series(drawing, 0, 1).dash != drawn_series(drawing, 0, 2).dash);
  CHECK(drawn_series(drawing, 0, 3).colour == drawing.colours.faded);
  CHECK(drawn_series(drawing, 0, 4).colour == drawn_series(drawing, 0, 1).colour);
  CHECK(drawn_series(drawing, 0, 4).dash != drawn_series(drawing, 0, 1).dash);
  CHECK(drawn_series(drawing, 0, 3).line_type != drawn_series(drawing, 0, 0).line_type);
}

TEST_CASE("cells of one value, or of none, have colours from somewhere to somewhere") {
  ChartSeries cells;
  cells.z = {2, 2};
  CHECK(colour_range_of({.scale = AxisScale::logarithmic}, cells).high > 2);
  cells.z = {std::numeric_limits<double>::quiet_NaN()};
  const AxisRange none = colour_range_of({}, cells);
  CHECK(none.low < none.high);
}
