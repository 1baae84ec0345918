#include "render/figures/chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace specdec::render {
namespace {

[[noreturn]] void wrong_chart(const std::string& place, const std::string& what) {
  throw std::invalid_argument(fmt::format("require_drawable: {}: {}", place, what));
}

void check_axis(const std::string& place, const ChartAxis& axis) {
  const bool is_key = !axis.key.empty() && std::all_of(axis.key.begin(), axis.key.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  if (!is_key) wrong_chart(place, fmt::format("the axis' key is \"{}\", but must be in snake_case", axis.key));
  if (axis.label.empty()) wrong_chart(place, fmt::format("the axis {} has no label", axis.key));
  const auto check_end = [&](const std::optional<double>& end) {
    if (!end) return;
    if (!std::isfinite(*end) || (axis.scale == AxisScale::logarithmic && *end <= 0))
      wrong_chart(place, fmt::format("the axis {} ends at {}", axis.key, *end));
  };
  check_end(axis.low);
  check_end(axis.high);
  if (axis.low && axis.high && !(*axis.low < *axis.high))
    wrong_chart(place, fmt::format("the axis {} runs from {} to {}", axis.key, *axis.low, *axis.high));
  if (!axis.categories.empty() && axis.scale == AxisScale::logarithmic)
    wrong_chart(place, fmt::format("the axis {} of categories is logarithmic", axis.key));
}

/// Places of marks; ends of bands, boxes and error bars that a logarithmic axis cannot show are moved to its end.
void check_places(const std::string& place, const ChartAxis& axis, const std::vector<double>& values) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (axis.scale == AxisScale::logarithmic && value <= 0)
      wrong_chart(place, fmt::format("{} is {}, but the axis is logarithmic", axis.key, value));
    const auto count = static_cast<double>(axis.categories.size());
    if (count > 0 && !(-0.5 <= value && value <= count - 0.5))
      wrong_chart(place, fmt::format("{} is {}, but there are {} categories", axis.key, value, count));
  }
}

using NamedSizes = std::vector<std::pair<std::string_view, std::size_t>>;

void check_lengths(const std::string& place, const ChartSeries& s) {
  const NamedSizes sizes = {{"x", s.x.size()},       {"y", s.y.size()},          {"low", s.low.size()},
                            {"high", s.high.size()}, {"x_low", s.x_low.size()},  {"x_high", s.x_high.size()},
                            {"z", s.z.size()},       {"labels", s.labels.size()}};
  const auto used = vectors_of(s.mark);
  const bool has_error_bars = (s.mark == ChartMark::points || s.mark == ChartMark::bars) && !s.low.empty();
  std::size_t length = 0;
  for (const auto& [name, size] : sizes) {
    if (name == used.front()) length = size;
  }
  if (length == 0) wrong_chart(place, "there is nothing to draw");
  for (const auto& [name, size] : sizes) {
    const bool is_used = std::find(used.begin(), used.end(), name) != used.end() ||
                         (has_error_bars && (name == "low" || name == "high"));
    const std::size_t expected = is_used ? length : 0;
    if (size != expected)
      wrong_chart(place, fmt::format("{} has {} entries, but {} needs {}", name, size, name_of(s.mark), expected));
  }
}

/// Cells are drawn as one image with equal column widths and equal row heights.
void check_even(const std::string& place, const ChartAxis& axis, const std::vector<double>& values) {
  const auto on_axis = [&](double value) { return axis.scale == AxisScale::logarithmic ? std::log(value) : value; };
  const double first = on_axis(values.front());
  const double step = (on_axis(values.back()) - first) / static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = on_axis(values[i]) - (first + step * static_cast<double>(i));
    if (!(std::abs(off) <= 1e-6 * step))
      wrong_chart(place, fmt::format("cell {} along {} is at {}, but cells must be evenly spaced on its {} axis", i + 1,
                                     axis.key, values[i], name_of(axis.scale)));
  }
}

void check_grid(const std::string& place, const ChartPanel& panel, const ChartSeries& s) {
  std::size_t columns = 1;
  while (columns < s.x.size() && s.y[columns] == s.y.front()) ++columns;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const bool same_column = s.x[i] == s.x[i % columns];
    const bool same_row = s.y[i] == s.y[i - i % columns];
    const bool increases = (i % columns == 0 || s.x[i - 1] < s.x[i]) && (i < columns || s.y[i - columns] < s.y[i]);
    if (!same_column || !same_row || !increases)
      wrong_chart(place, fmt::format("cell {} is not on a grid whose x runs fastest and upwards", i));
  }
  if (s.x.size() % columns != 0) wrong_chart(place, "the last row of cells is not complete");
  if (columns < 2 || s.x.size() / columns < 2) wrong_chart(place, "cells need two rows and two columns");
  std::vector<double> rows;
  for (std::size_t i = 0; i < s.y.size(); i += columns) rows.push_back(s.y[i]);
  check_even(place, panel.x, {s.x.begin(), s.x.begin() + static_cast<std::ptrdiff_t>(columns)});
  check_even(place, panel.y, rows);
}

void check_series(const std::string& place, const ChartPanel& panel, const ChartSeries& s) {
  check_lengths(place, s);
  check_places(place, panel.x, s.x);
  check_places(place, panel.y, s.y);
  if (s.mark == ChartMark::cells) {
    if (!panel.z) wrong_chart(place, "cells without a z axis");
    check_grid(place, panel, s);
    check_places(place, *panel.z, s.z);
  }
  if (s.colour && *s.colour < 0) wrong_chart(place, fmt::format("the colour is {}", *s.colour));
}

}  // namespace

void require_drawable(const Chart& chart) {
  if (chart.name.empty() || chart.title.empty() || chart.caption.empty())
    wrong_chart(chart.name, "name, title or caption is empty");
  if (chart.panels.empty()) wrong_chart(chart.name, "there is no panel");
  if (chart.columns < 1) wrong_chart(chart.name, fmt::format("there are {} columns of panels", chart.columns));
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const ChartPanel& panel = chart.panels[p];
    const std::string place = fmt::format("{}, panel {}", chart.name, p + 1);
    check_axis(place, panel.x);
    check_axis(place, panel.y);
    if (panel.z) check_axis(place, *panel.z);
    if (panel.x.key == panel.y.key) wrong_chart(place, fmt::format("{} is the key of both axes", panel.x.key));
    if (panel.series.empty()) wrong_chart(place, "there is nothing to draw");
    for (std::size_t s = 0; s < panel.series.size(); ++s)
      check_series(fmt::format("{}, series {} {}", place, s + 1, panel.series[s].name), panel, panel.series[s]);
  }
}

}  // namespace specdec::render
