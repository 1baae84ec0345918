#pragma once

#include "render/figures/chart_drawing.hpp"
#include "render/figures/gnuplot_text.hpp"

namespace specdec::render {

/// Writes the data of every series, in blocks named as in DrawnSeries, as its marks need them.
void write_data_blocks(const ChartDrawing& drawing, GnuplotText& script);

}  // namespace specdec::render
