#pragma once

#include <string>
#include <string_view>

namespace specdec::render {

/// What a drawing says of itself, besides what is seen.
struct DrawingFacts {
  std::string name;  ///< of the figure
  std::string title;
  std::string caption;
  std::string made_by;  ///< the command
};

/// gnuplot's SVG with title and description, which screen readers read, and the command as Dublin Core metadata; its
/// ids begin with the figure's name, so that several stand in one page.
/// @throws std::runtime_error if that is no SVG of gnuplot's
std::string svg_with_facts(std::string svg, const DrawingFacts& facts);

/// An SVG whose words and axes take the colour of the text around it: what was drawn in `ink`, `faded` and `grid`
/// ("#rrggbb") becomes currentColor, the latter two with some opacity.
std::string svg_in_colour_of_page(std::string svg, std::string_view ink, std::string_view faded, std::string_view grid);

/// A PNG with the facts in text chunks behind its header, and its resolution.
/// @param pixels_per_inch  > 0
/// @throws std::runtime_error if that is no PNG
std::string png_with_facts(std::string_view png, const DrawingFacts& facts, double pixels_per_inch);

/// A PDF with the facts in its document information, as an update behind what was there.
/// @throws std::runtime_error if that is no PDF with a plain cross-reference table
std::string pdf_with_facts(std::string pdf, const DrawingFacts& facts);

}  // namespace specdec::render
