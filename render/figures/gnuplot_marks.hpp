#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "render/figures/chart_drawing.hpp"
#include "render/figures/gnuplot_text.hpp"

namespace specdec::render {

/// Writes the plot command of a panel, and before it the arrows and labels among its marks, larger areas first.
void write_marks(const ChartDrawing& drawing, std::size_t panel, GnuplotText& script);

/// The argument of "plot" that draws only a series' line in the legend, with the text `name`.
std::string legend_entry(const ChartDrawing& drawing, const DrawnSeries& drawn, std::string_view name);

/// Writes the data of every series, in blocks named as in DrawnSeries, as its marks need them.
void write_data_blocks(const ChartDrawing& drawing, GnuplotText& script);

}  // namespace specdec::render
