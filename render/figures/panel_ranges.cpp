#include "render/figures/panel_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>

namespace specdec::render {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Of no values: low > high.
constexpr AxisRange nothing = {infinite, -infinite};

/// Extends a range by values as far as their axis can show them.
void cover(AxisRange& range, const std::vector<double>& values, AxisScale scale) {
  for (const double value : values) {
    if (!std::isfinite(value) || (scale == AxisScale::logarithmic && value <= 0)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
}

bool has_mark(const ChartPanel& panel, ChartMark mark) {
  return std::any_of(panel.series.begin(), panel.series.end(), [&](const ChartSeries& s) { return s.mark == mark; });
}

/// The smallest distance between different bars.
double bar_spacing(const ChartPanel& panel) {
  std::set<double> places;
  for (const ChartSeries& s : panel.series) {
    if (s.mark != ChartMark::bars) continue;
    for (const double x : s.x) {
      if (std::isfinite(x)) places.insert(x);
    }
  }
  double spacing = infinite;
  for (auto place = places.begin(); place != places.end() && std::next(place) != places.end(); ++place)
    spacing = std::min(spacing, *std::next(place) - *place);
  return std::isfinite(spacing) ? spacing : 1;
}

PanelRanges covered_by_marks(const ChartPanel& panel) {
  PanelRanges covered = {nothing, nothing};
  for (const ChartSeries& s : panel.series) {
    for (const auto* values : {&s.x, &s.x_low, &s.x_high}) cover(covered.x, *values, panel.x.scale);
    for (const auto* values : {&s.y, &s.low, &s.high}) cover(covered.y, *values, panel.y.scale);
    if (s.mark == ChartMark::cells) {
      const CellGrid grid = grid_of(panel, s);
      cover(covered.x, grid.x_edges, panel.x.scale);
      cover(covered.y, grid.y_edges, panel.y.scale);
    }
  }
  if (has_mark(panel, ChartMark::bars)) {
    const double half = bar_spacing(panel) / 2;
    covered.x.low -= half;
    covered.x.high += half;
    cover(covered.y, {0}, panel.y.scale);
  }
  return covered;
}

/// For no values a range to draw axes at; for a single value some room on both sides.
AxisRange widened(const AxisRange& data, bool is_log) {
  if (!(data.low <= data.high)) return {is_log ? 1.0 : 0.0, is_log ? 10.0 : 1.0};
  if (data.low < data.high) return data;
  if (is_log) return {data.low / 2, data.high * 2};
  const double half = std::max(0.5, std::abs(data.low) / 10);
  return {data.low - half, data.high + half};
}

/// Keeps the outer marks off the panel's edge. Ranges that begin near 0 begin there.
AxisRange with_room(const AxisRange& data, bool is_log) {
  if (is_log) {
    const double room = std::pow(data.high / data.low, 0.04);
    return {data.low / room, data.high * room};
  }
  const bool from_zero = data.low >= 0 && data.low < 0.3 * data.high;
  const double room = 0.04 * (data.high - data.low);
  return {from_zero ? 0 : data.low - room, data.high + room};
}

AxisRange range_of(const ChartAxis& axis, const AxisRange& covered, bool needs_room) {
  if (!axis.categories.empty()) return {-0.5, static_cast<double>(axis.categories.size()) - 0.5};
  const bool is_log = is_logarithmic(axis);
  AxisRange data = widened(covered, is_log);
  if (needs_room) data = with_room(data, is_log);
  const double low = axis.low.value_or(data.low), high = axis.high.value_or(data.high);
  if (low < high) return {low, high};
  // The requested end lies beyond all marks.
  return axis.low ? AxisRange{low, is_log ? low * 10 : low + 1} : AxisRange{is_log ? high / 10 : high - 1, high};
}

std::vector<double> edges_of(const std::vector<double>& places, AxisScale scale) {
  const bool log = scale == AxisScale::logarithmic;
  const auto to = [log](double value) { return log ? std::log(value) : value; };
  const auto from = [log](double value) { return log ? std::exp(value) : value; };
  std::vector<double> edges = {from(1.5 * to(places[0]) - 0.5 * to(places[1]))};
  for (std::size_t i = 1; i < places.size(); ++i) edges.push_back(from((to(places[i - 1]) + to(places[i])) / 2));
  edges.push_back(from(1.5 * to(places.back()) - 0.5 * to(places[places.size() - 2])));
  return edges;
}

}  // namespace

bool is_logarithmic(const ChartAxis& axis) { return axis.scale == AxisScale::logarithmic; }

bool has_cells(const ChartPanel& panel) { return has_mark(panel, ChartMark::cells); }

PanelRanges ranges_of(const ChartPanel& panel) {
  const PanelRanges covered = covered_by_marks(panel);
  return {range_of(panel.x, covered.x, false), range_of(panel.y, covered.y, !has_cells(panel))};
}

AxisRange colour_range_of(const ChartAxis& z, const ChartSeries& cells) {
  AxisRange covered = nothing;
  cover(covered, cells.z, z.scale);
  return range_of(z, covered, false);
}

double end_within(double value, const AxisRange& range, const ChartAxis& axis) {
  if (std::isnan(value)) return value;
  if (value == infinite) return range.high;
  if (value == -infinite || (is_logarithmic(axis) && value <= 0)) return range.low;
  return value;
}

double bar_width(const ChartPanel& panel) {
  const auto count = std::count_if(panel.series.begin(), panel.series.end(),
                                   [](const ChartSeries& s) { return s.mark == ChartMark::bars; });
  return 0.84 * bar_spacing(panel) / static_cast<double>(std::max<std::ptrdiff_t>(count, 1));
}

double bar_shift(const ChartPanel& panel, const ChartSeries& bars) {
  double count = 0, before = 0;
  for (const ChartSeries& other : panel.series) {
    if (&other == &bars) before = count;
    if (other.mark == ChartMark::bars) ++count;
  }
  return (before - (count - 1) / 2) * bar_width(panel);
}

CellGrid grid_of(const ChartPanel& panel, const ChartSeries& cells) {
  std::vector<double> x, y;
  for (std::size_t i = 0; i < cells.x.size() && (i == 0 || cells.y[i] == cells.y[0]); ++i) x.push_back(cells.x[i]);
  for (std::size_t i = 0; i < cells.y.size(); i += x.size()) y.push_back(cells.y[i]);
  return {edges_of(x, panel.x.scale), edges_of(y, panel.y.scale)};
}

AxisRange counted_cells(const std::vector<double>& edges, AxisScale scale, const AxisRange& shown) {
  const auto to = [scale](double value) { return scale == AxisScale::logarithmic ? std::log(value) : value; };
  const double first = to(edges.front());
  const double size = (to(edges.back()) - first) / static_cast<double>(edges.size() - 1);
  return {(to(shown.low) - first) / size - 0.5, (to(shown.high) - first) / size - 0.5};
}

}  // namespace specdec::render
