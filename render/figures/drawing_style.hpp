#pragma once

namespace specdec::render {

enum class DrawingKind { svg, png, pdf, terminal };

/// The background of a drawing.
enum class DrawingTheme {
  light,  ///< white paper
  dark,   ///< a dark screen
  page    ///< none: SVG within a page, whose text colour its axes and words take
};

/// The style of a drawn chart. Lengths are in units of 1/96 inch.
struct DrawingStyle {
  DrawingKind kind = DrawingKind::svg;
  DrawingTheme theme = DrawingTheme::light;
  double width = 720;
  /// True if title and caption are part of the drawing; false if they stand around it. A terminal always has its title.
  bool has_title = true;
  bool has_caption = true;
  /// Pixels of a PNG per unit.
  double pixels = 1;
  /// Columns of text in a terminal.
  int columns = 100;
  int rows = 32;
  bool colour = false;
};

}  // namespace specdec::render
