#include "render/figures/chart_panel.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace specdec::render {

std::string_view name_of(AxisScale scale) { return scale == AxisScale::linear ? "linear" : "logarithmic"; }

std::string_view name_of(ChartMark mark) {
  constexpr std::array<std::string_view, 10> names = {"line", "steps", "points",   "bars",       "band",
                                                      "box",  "cells", "vertical", "horizontal", "text"};
  return names.at(static_cast<std::size_t>(mark));
}

std::string_view name_of(ChartRole role) {
  return role == ChartRole::data ? "data" : role == ChartRole::reference ? "reference" : "highlight";
}

std::size_t length_of(const ChartSeries& s) { return std::max({s.x.size(), s.y.size(), s.low.size(), s.x_low.size()}); }

void add_ends(const std::optional<estimate::Interval>& interval, ChartSeries& series) {
  series.low.push_back(interval ? interval->lo : chart_gap);
  series.high.push_back(interval ? interval->hi : chart_gap);
}

ChartSeries reference_line(ChartMark mark, std::string name, std::vector<double> places) {
  ChartSeries line{.name = std::move(name), .mark = mark, .role = ChartRole::reference};
  (mark == ChartMark::horizontal ? line.y : line.x) = std::move(places);
  return line;
}

}  // namespace specdec::render
