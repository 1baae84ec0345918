#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// How much room words take in a drawing.
namespace specdec::cli {

/// Characters as a reader counts them.
std::size_t characters(std::string_view text);

/// Lines of at most so many characters, broken at blanks.
std::vector<std::string> lines_of(const std::string& text, std::size_t width);

}  // namespace specdec::cli
