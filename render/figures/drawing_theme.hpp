#pragma once

#include <array>
#include <string>

#include "render/figures/chart_panel.hpp"
#include "render/figures/drawing_style.hpp"

/// What drawings are made of: colours, dashes, points and fillings. A number stands for one of each, so that a copy in
/// grey says what the colours say.
namespace specdec::render {

/// Colours of a theme, "#rrggbb".
struct DrawingPalette {
  std::string paper;
  std::string ink;    ///< words and axes
  std::string faded;  ///< references
  std::string grid;
  std::array<std::string, chart_colours::count> data;
};

/// Okabe and Ito's colours, in an order that keeps neighbours apart in grey as well; on a dark screen lighter ones of
/// the same hues.
const DrawingPalette& palette_of(DrawingTheme theme);

/// Of Matplotlib's viridis at even distances, published as CC0: light grows steadily, so that it is legible in grey.
/// In gnuplot's form for a palette.
inline constexpr const char* heat_colours =
    "(0 '#440154', 1 '#482878', 2 '#3e4a89', 3 '#31688e', 4 '#26838f', 5 '#1f9d8a', 6 '#6cce5a', 7 '#b6de2b', "
    "8 '#fee825')";

/// Of an area that lies over a line or another area.
inline constexpr double band_opacity = 0.22;

/// gnuplot's dash, point and pattern of a number >= 0. Beyond the last one they begin again one further on, so that
/// who has the colour of another has another dash.
const char* dash_of_number(int number);
int point_of_number(int number);
int pattern_of_number(int number);

}  // namespace specdec::render
