#pragma once

#include <optional>
#include <vector>

#include "render/figures/panel_ranges.hpp"

namespace specdec::render {

enum class PanelAxis { x, y };

/// Room between the axes of a panel, in heights of the font.
struct PanelRoom {
  double width;
  double height;
};

/// The tics of an axis of numbers: at a step, at places, or, with neither, where gnuplot puts them.
struct AxisTics {
  std::optional<double> step = {};
  std::vector<double> places = {};
};

/// For integer data, multiples of their common divisor, else of 1, 2 or 5 times a power of ten; on
/// a logarithmic axis powers of two if the data are powers of two, and logarithmic_tics. Limited by the room.
AxisTics tics_of(const ChartPanel& panel, PanelAxis axis, const AxisRange& range, const PanelRoom& room);

/// 1, 2 and 5 times powers of ten over at most about two decades; if these are fewer than two, all their multiples
/// or those of a smaller step. Empty over more decades, where powers of ten suffice.
std::vector<double> logarithmic_tics(const AxisRange& range);

}  // namespace specdec::render
