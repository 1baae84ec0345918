#pragma once

#include "cli/figures/chart_drawing.hpp"
#include "cli/figures/gnuplot_text.hpp"

namespace specdec::cli {

/// The data of every series in blocks named as in DrawnSeries, as its marks need them.
void write_data_blocks(const ChartDrawing& drawing, GnuplotText& script);

}  // namespace specdec::cli
