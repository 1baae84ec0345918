#pragma once

#include <optional>
#include <vector>

#include "render/figures/panel_ranges.hpp"

namespace specdec::render {

enum class PanelAxis { x, y };

/// Between the axes of a panel, in heights of the font.
struct PanelRoom {
  double width;
  double height;
};

/// Where an axis of numbers has its tics: at a step, at places, or, with neither, where gnuplot puts them.
struct AxisTics {
  std::optional<double> step = {};
  std::vector<double> places = {};
};

/// Where the data are whole numbers, multiples of what divides all of them, else of 1, 2 or 5 times a power of ten; on
/// a logarithmic axis powers of two where the data are, and logarithmic_tics. No more than there is room for.
AxisTics tics_of(const ChartPanel& panel, PanelAxis axis, const AxisRange& range, const PanelRoom& room);

/// 1, 2 and 5 times powers of ten over at most two decades or so; where these are fewer than two, all their multiples
/// or those of a smaller step. Nothing over more decades, where powers of ten will do.
std::vector<double> logarithmic_tics(const AxisRange& range);

}  // namespace specdec::render
