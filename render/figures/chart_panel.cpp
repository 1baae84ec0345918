#include "render/figures/chart_panel.hpp"

#include <stdexcept>
#include <utility>

namespace specdec::render {

std::string_view name_of(AxisScale scale) { return scale == AxisScale::linear ? "linear" : "logarithmic"; }

std::string_view name_of(ChartMark mark) {
  switch (mark) {
    case ChartMark::line:
      return "line";
    case ChartMark::steps:
      return "steps";
    case ChartMark::points:
      return "points";
    case ChartMark::bars:
      return "bars";
    case ChartMark::band:
      return "band";
    case ChartMark::box:
      return "box";
    case ChartMark::cells:
      return "cells";
    case ChartMark::vertical:
      return "vertical";
    case ChartMark::horizontal:
      return "horizontal";
    case ChartMark::text:
      return "text";
  }
  throw std::invalid_argument("name_of: no such mark");
}

std::string_view name_of(ChartRole role) {
  return role == ChartRole::data ? "data" : role == ChartRole::reference ? "reference" : "highlight";
}

std::vector<std::string_view> vectors_of(ChartMark mark) {
  switch (mark) {
    case ChartMark::line:
    case ChartMark::steps:
    case ChartMark::points:
    case ChartMark::bars:
      return {"x", "y"};
    case ChartMark::band:
      return {"x", "low", "high"};
    case ChartMark::box:
      return {"x_low", "x_high", "low", "high"};
    case ChartMark::cells:
      return {"x", "y", "z"};
    case ChartMark::vertical:
      return {"x"};
    case ChartMark::horizontal:
      return {"y"};
    case ChartMark::text:
      return {"x", "y", "labels"};
  }
  throw std::invalid_argument("vectors_of: no such mark");
}

ChartSeries reference_line(ChartMark mark, std::string name, std::vector<double> places) {
  ChartSeries line;
  line.name = std::move(name);
  line.mark = mark;
  (mark == ChartMark::horizontal ? line.y : line.x) = std::move(places);
  line.role = ChartRole::reference;
  return line;
}

}  // namespace specdec::render
