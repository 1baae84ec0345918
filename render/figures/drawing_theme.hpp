#pragma once

#include <array>
#include <string>

#include "render/figures/chart_panel.hpp"
#include "render/figures/drawing_style.hpp"

/// The elements of drawings: colours, dashes, points and fillings. A number stands for one of each, so that a copy in
/// grey is as distinguishable as one in colour.
namespace specdec::render {

/// Colours of a theme, "#rrggbb".
struct DrawingPalette {
  std::string paper;
  std::string ink;    ///< words and axes
  std::string faded;  ///< references
  std::string grid;
  std::array<std::string, chart_colours::count> data;
};

/// Okabe and Ito's colours, ordered so that neighbours differ in grey as well; for a dark screen lighter ones of
/// the same hues.
const DrawingPalette& palette_of(DrawingTheme theme);

/// Matplotlib's viridis at equal distances, published as CC0: lightness grows steadily, so that it is legible in grey.
/// In gnuplot's palette format.
inline constexpr const char* heat_colours =
    "(0 '#440154', 1 '#482878', 2 '#3e4a89', 3 '#31688e', 4 '#26838f', 5 '#1f9d8a', 6 '#6cce5a', 7 '#b6de2b', "
    "8 '#fee825')";

/// Opacity of an area that lies over a line or another area.
inline constexpr double band_opacity = 0.22;

/// gnuplot's dash, point and pattern for a number >= 0. Beyond the last one they start again shifted by one, so that
/// two series with one colour differ in dash.
const char* dash_of_number(int number);
int point_of_number(int number);
int pattern_of_number(int number);

}  // namespace specdec::render
