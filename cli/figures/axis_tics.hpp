#pragma once

#include <optional>
#include <vector>

#include "cli/figures/panel_ranges.hpp"

namespace specdec::cli {

enum class PanelAxis { x, y };

/// Where an axis of numbers has its tics: at a step, at places, or, with neither, where gnuplot puts them.
struct AxisTics {
  std::optional<double> step = {};
  std::vector<double> places = {};
};

/// At whole numbers where the data have no others, and at powers of two likewise.
AxisTics tics_of(const ChartPanel& panel, PanelAxis axis, const AxisRange& range);

}  // namespace specdec::cli
