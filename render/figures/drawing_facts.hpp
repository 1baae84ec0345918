#pragma once

#include <string>
#include <string_view>

namespace specdec::render {

/// Metadata of a drawing.
struct DrawingFacts {
  std::string name;  ///< name of the figure
  std::string title;
  std::string caption;
  std::string made_by;  ///< the command
};

/// gnuplot's SVG with title and description, which screen readers read, and the command as Dublin Core metadata; its
/// ids begin with the figure's name, so that one page can hold several.
/// @throws std::runtime_error if that is not an SVG by gnuplot
std::string svg_with_facts(std::string svg, const DrawingFacts& facts);

/// An SVG whose text and axes take the colour of the surrounding text: elements drawn in `ink`, `faded` and `grid`
/// ("#rrggbb") becomes currentColor, the latter two with some opacity.
std::string svg_in_colour_of_page(std::string svg, std::string_view ink, std::string_view faded, std::string_view grid);

}  // namespace specdec::render
