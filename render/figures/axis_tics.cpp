#include "render/figures/axis_tics.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>

#include "render/figures/drawing_text.hpp"

namespace specdec::render {
namespace {

/// More tics than this add nothing.
constexpr std::size_t most_tics = 12;
constexpr double most_decades = 2.2;

/// The places of marks; ends of intervals do not count.
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

bool is_whole(double value) { return value == std::round(value) && std::abs(value) < 1e9; }

/// @param line  room for one number along y, in heights of the font
bool have_room(const std::vector<double>& tics, PanelAxis axis, const PanelRoom& room, double line = 1.6) {
  constexpr double between_labels = 1.2;
  if (tics.size() > most_tics) return false;
  if (axis == PanelAxis::y) return line * static_cast<double>(tics.size()) <= room.height;
  double width = 0;
  for (const double tic : tics) width += width_in_ems(fmt::format("{:.6g}", tic)) + between_labels;
  return width <= room.width;
}

/// Multiples of a step within the range, at most one more than there is ever room for.
std::vector<double> multiples(double step, const AxisRange& range) {
  const double rounding = 1e-9 * step;
  std::vector<double> found;
  for (double k = std::ceil((range.low - rounding) / step);
       k * step <= range.high + rounding && found.size() <= most_tics; ++k)
    found.push_back(k * step);
  return found;
}

/// The smallest of unit, 2 unit, 5 unit, 10 unit, ... whose multiples meet the condition; empty if at most one
/// multiple is left.
template <class Condition>
std::optional<double> smallest_step(double unit, const AxisRange& range, const Condition& suits) {
  for (double power = 1; unit * power <= range.high - range.low; power *= 10) {
    for (const double factor : {1, 2, 5}) {
      const double step = unit * factor * power;
      const std::vector<double> tics = multiples(step, range);
      if (tics.size() < 2) return std::nullopt;
      if (suits(tics)) return step;
    }
  }
  return std::nullopt;
}

/// A power of ten so small that it has too many multiples.
double small_unit(const AxisRange& range) { return std::pow(10, std::floor(std::log10(range.high - range.low)) - 2); }

AxisTics whole_tics(const std::set<double>& places, PanelAxis axis, const AxisRange& range, const PanelRoom& room) {
  std::int64_t divisor = 0;
  for (const double place : places) divisor = std::gcd(divisor, static_cast<std::int64_t>(place));
  return {.step = smallest_step(static_cast<double>(std::max<std::int64_t>(divisor, 1)), range,
                                [&](const auto& tics) { return have_room(tics, axis, room); })};
}

AxisTics linear_tics(PanelAxis axis, const AxisRange& range, const PanelRoom& room) {
  constexpr double line = 2.2;
  constexpr std::size_t most_fractions = 9;
  return {.step = smallest_step(small_unit(range), range, [&](const auto& tics) {
            return tics.size() <= most_fractions && have_room(tics, axis, room, line);
          })};
}

}  // namespace

std::vector<double> logarithmic_tics(const AxisRange& range) {
  if (std::log10(range.high / range.low) > most_decades) return {};
  const auto within = [&](const std::vector<double>& factors) {
    std::vector<double> tics;
    for (double power = std::floor(std::log10(range.low)); power <= std::log10(range.high); ++power) {
      for (const double factor : factors) {
        const double tic = factor * std::pow(10, power);
        if (range.low * (1 - 1e-9) <= tic && tic <= range.high * (1 + 1e-9)) tics.push_back(tic);
      }
    }
    return tics;
  };
  std::vector<double> tics = within({1, 2, 5});
  if (tics.size() < 2) tics = within({1, 2, 3, 4, 5, 6, 7, 8, 9});
  if (tics.size() >= 2) return tics;
  const auto step = smallest_step(small_unit(range), range, [](const auto& found) { return found.size() <= 5; });
  return step ? multiples(*step, range) : std::vector<double>{};
}

AxisTics tics_of(const ChartPanel& panel, PanelAxis axis, const AxisRange& range, const PanelRoom& room) {
  const std::set<double> places = places_on(panel, axis);
  const auto are_all = [&](auto holds) { return !places.empty() && std::all_of(places.begin(), places.end(), holds); };
  if (!is_logarithmic(axis == PanelAxis::x ? panel.x : panel.y))
    return are_all(is_whole) ? whole_tics(places, axis, range, room) : linear_tics(axis, range, room);
  const std::vector<double> powers_of_two(places.begin(), places.end());
  if (range.high / range.low > 3 && are_all([](double value) { return is_whole(std::log2(value)); }) &&
      have_room(powers_of_two, axis, room)) {
    return {.places = powers_of_two};
  }
  const std::vector<double> tics = logarithmic_tics(range);
  return have_room(tics, axis, room) ? AxisTics{.places = tics} : AxisTics{};
}

}  // namespace specdec::render
