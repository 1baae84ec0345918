#include "render/figures/gnuplot_text.hpp"

#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <cmath>

#include "render/text.hpp"

namespace specdec::render {

std::string gnuplot_string(std::string_view text) {
  std::string quoted = "'";
  for (const char c : visible(text)) {
    // gnuplot writes text of SVG as CDATA, which ]]> would end.
    if (c == '>' && quoted.ends_with("]]")) quoted += ' ';
    quoted += c == '\'' ? std::string("''") : std::string(1, c);
  }
  return quoted + '\'';
}

std::string gnuplot_lines(const std::vector<std::string>& lines) {
  std::vector<std::string> strings;
  for (const std::string& line : lines) strings.push_back(gnuplot_string(line));
  return fmt::format("{}", fmt::join(strings, ".\"\\n\"."));
}

std::string gnuplot_tic_label(std::string_view text) {
  std::string label;
  for (const char c : text) label += c == '%' ? "%%" : std::string(1, c);
  return gnuplot_string(label);
}

std::string gnuplot_identifier(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string gnuplot_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "NaN"; }

}  // namespace specdec::render
