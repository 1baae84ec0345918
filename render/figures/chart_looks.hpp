#pragma once

#include <vector>

#include "render/figures/chart_panel.hpp"

namespace specdec::render {

/// The look of a series: a number that stands for a colour, a dash, a point and a filling.
struct SeriesLook {
  int number = 0;
  /// True at the first use of the name, which gets a line in the legend.
  bool in_legend = false;
};

/// Looks of every series of every panel.
using ChartLooks = std::vector<std::vector<SeriesLook>>;

/// Series of one name look alike in all panels; a series without a stated colour gets the first one that no other
/// series states.
ChartLooks looks_of(const std::vector<ChartPanel>& panels);

/// True if one legend serves all panels: no two names have the same look.
bool shares_legend(const std::vector<ChartPanel>& panels, const ChartLooks& looks);

}  // namespace specdec::render
