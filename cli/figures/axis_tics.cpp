#include "cli/figures/axis_tics.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace specdec::cli {
namespace {

/// Where marks stand; ends of intervals are no places.
std::set<double> places_on(const ChartPanel& panel, PanelAxis axis) {
  std::set<double> places;
  for (const ChartSeries& s : panel.series) {
    if (s.mark == ChartMark::text || s.mark == ChartMark::vertical) continue;
    if (axis == PanelAxis::y && !s.low.empty()) continue;
    for (const double value : axis == PanelAxis::x ? s.x : s.y) {
      if (std::isfinite(value)) places.insert(value);
    }
  }
  return places;
}

bool is_whole(double value) { return value == std::round(value); }

}  // namespace

AxisTics tics_of(const ChartPanel& panel, PanelAxis axis, const AxisRange& range) {
  const std::set<double> places = places_on(panel, axis);
  const auto are_all = [&](auto holds) { return !places.empty() && std::all_of(places.begin(), places.end(), holds); };
  if (!is_logarithmic(axis == PanelAxis::x ? panel.x : panel.y)) {
    if (range.high - range.low <= 10 && are_all(is_whole)) return {.step = 1};
  } else if (places.size() <= 14 && range.high / range.low > 3 &&
             are_all([](double value) { return is_whole(std::log2(value)); })) {
    return {.places = {places.begin(), places.end()}};
  }
  return {};
}

}  // namespace specdec::cli
