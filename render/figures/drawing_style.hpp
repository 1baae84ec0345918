#pragma once

#include <string>

namespace specdec::render {

enum class DrawingKind { svg, png, pdf, terminal };

/// What a drawing is drawn on.
enum class DrawingTheme {
  light,  ///< white paper
  dark,   ///< a dark screen
  page    ///< nothing: SVG within a page, whose text colour its axes and words take
};

/// How a chart is drawn. Lengths are in units of 1/96 inch.
struct DrawingStyle {
  DrawingKind kind = DrawingKind::svg;
  DrawingTheme theme = DrawingTheme::light;
  double width = 720;
  /// Title and caption are part of the drawing; false where they stand around it. A terminal has its title always.
  bool has_title = true;
  bool has_caption = true;
  /// Pixels of a PNG in one unit.
  double pixels = 1;
  /// Of text in a terminal.
  int columns = 100;
  int rows = 32;
  bool colour = false;
};

}  // namespace specdec::render
