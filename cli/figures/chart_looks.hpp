#pragma once

#include <string>
#include <vector>

#include "cli/figures/chart.hpp"
#include "cli/figures/drawing_style.hpp"

namespace specdec::cli {

/// Colours of a theme, "#rrggbb".
struct DrawingPalette {
  std::string paper;
  std::string ink;    ///< words and axes
  std::string faded;  ///< references
  std::string grid;
  std::vector<std::string> data;
};

/// Okabe and Ito's colours, in an order that keeps neighbours apart in grey as well; on a dark screen lighter ones of
/// the same hues.
const DrawingPalette& palette_of(DrawingTheme theme);

/// What tells a series from the others: a number, which stands for a colour, a dash, a point and a filling.
struct SeriesLook {
  int number = 0;
  /// Named here for the first time, and so a line of the legend.
  bool in_legend = false;
};

/// A look for every series of every panel. Series of one name look alike in all panels; who asks for no colour gets the
/// first that nobody in the chart asked for.
std::vector<std::vector<SeriesLook>> looks_of(const Chart& chart);

/// Whether one legend serves all panels: no two names have one look.
bool shares_legend(const Chart& chart, const std::vector<std::vector<SeriesLook>>& looks);

}  // namespace specdec::cli
