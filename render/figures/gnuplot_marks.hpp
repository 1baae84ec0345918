#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "render/figures/chart_drawing.hpp"
#include "render/figures/gnuplot_text.hpp"

namespace specdec::render {

/// The plot command of a panel, and before it the arrows and labels among its marks. What covers most lies below.
void write_marks(const ChartDrawing& drawing, std::size_t panel, GnuplotText& script);

/// What stands behind "plot" to have no more of a series than its line of the legend, which says `name`.
std::string legend_entry(const ChartDrawing& drawing, const DrawnSeries& drawn, std::string_view name);

}  // namespace specdec::render
