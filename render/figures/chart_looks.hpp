#pragma once

#include <vector>

#include "render/figures/chart_panel.hpp"

namespace specdec::render {

/// What tells a series from the others: a number, which stands for a colour, a dash, a point and a filling.
struct SeriesLook {
  int number = 0;
  /// Named here for the first time, and so a line of the legend.
  bool in_legend = false;
};

/// Of every series of every panel.
using ChartLooks = std::vector<std::vector<SeriesLook>>;

/// Series of one name look alike in all panels; who asks for no colour gets the first that nobody in the chart asked
/// for.
ChartLooks looks_of(const std::vector<ChartPanel>& panels);

/// Whether one legend serves all panels: no two names have one look.
bool shares_legend(const std::vector<ChartPanel>& panels, const ChartLooks& looks);

}  // namespace specdec::render
