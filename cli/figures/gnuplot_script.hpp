#pragma once

#include <string>
#include <string_view>

#include "cli/figures/chart.hpp"
#include "cli/figures/drawing_style.hpp"

namespace specdec::cli {

/// `text` as a gnuplot string in single quotes, within which gnuplot substitutes nothing. Control characters and bytes
/// that are no UTF-8 are escaped, see visible.
std::string gnuplot_string(std::string_view text);

/// What gnuplot 5.4 draws the chart from, to its standard output: settings, the data as they are, and plot commands.
/// Names of series, labels and titles are text in quotes, never commands, and never marked up.
/// @throws std::invalid_argument as require_drawable
std::string gnuplot_script(const Chart& chart, const DrawingStyle& style, std::string_view made_by);

}  // namespace specdec::cli
