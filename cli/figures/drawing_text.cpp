#include "cli/figures/drawing_text.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "cli/values.hpp"

namespace specdec::cli {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string_view word : split(text, ' ')) {
    if (!lines.empty() && characters(lines.back()) + 1 + characters(word) <= width) {
      lines.back() += fmt::format(" {}", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

}  // namespace specdec::cli
