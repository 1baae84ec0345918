#pragma once

#include <string>
#include <string_view>

#include "render/figures/chart.hpp"
#include "render/figures/drawing_style.hpp"

namespace specdec::render {

/// The chart as an SVG, PNG or PDF file, or as text, drawn by gnuplot. `made_by`, the command, is written to the file's
/// metadata with title and caption.
/// @throws std::invalid_argument as require_drawable; planner::QuestionError if gnuplot is not installed
std::string drawing_of(const Chart& chart, const DrawingStyle& style, std::string_view made_by);

}  // namespace specdec::render
