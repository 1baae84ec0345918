#pragma once

#include <string>
#include <string_view>

#include "render/figures/chart.hpp"
#include "render/figures/drawing_style.hpp"

namespace specdec::render {

/// The script from which gnuplot 5.4 draws the chart to its standard output: settings, the data as they are, and plot
/// commands. Names of series, labels and titles are quoted text, never commands, and never marked up.
/// @throws std::invalid_argument as require_drawable
std::string gnuplot_script(const Chart& chart, const DrawingStyle& style, std::string_view made_by);

}  // namespace specdec::render
