#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The room that words take in a drawing. Widths are in heights of the font, for a wide one (DejaVu Sans):
/// with another font lines end earlier.
namespace specdec::render {

double width_in_ems(std::string_view text);

/// Number of characters as a reader counts them.
std::size_t character_count(std::string_view text);

/// `text` in lines of at most this many ems, broken at blanks and, if a word is longer than a line, within it; "x = 1"
/// stays together if it fits on a line.
std::vector<std::string> lines_of(std::string_view text, double ems);

/// `text`, or its beginning and its end with "…" between them, in at most this many ems.
std::string shortened(std::string_view text, double ems);

}  // namespace specdec::render
