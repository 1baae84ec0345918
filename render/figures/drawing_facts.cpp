#include "render/figures/drawing_facts.hpp"

#include <fmt/format.h>
#include <charconv>
#include <stdexcept>

#include "render/step_figure.hpp"
#include "render/version.hpp"

namespace specdec::render {
namespace {

[[noreturn]] void no_such_drawing(const char* what) {
  throw std::runtime_error(fmt::format("gnuplot's drawing is not as expected: {}", what));
}

std::string program() { return fmt::format("specdec {}", version()); }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The three parts of "#rrggbb".
struct ColourParts {
  int red;
  int green;
  int blue;
};

ColourParts parts_of(std::string_view colour) {
  const auto part = [&](std::size_t at) {
    int value = 0;
    std::from_chars(colour.data() + at, colour.data() + at + 2, value, 16);
    return value;
  };
  return {part(1), part(3), part(5)};
}

/// Removes the titles that gnuplot gives to each series, which browsers would show at the pointer.
void remove_series_titles(std::string& svg, const std::string& prefix) {
  const std::string begin = fmt::format("<title>{}_plot_", prefix), end = "</title>";
  for (std::size_t at = 0; (at = svg.find(begin, at)) != std::string::npos;)
    svg.erase(at, svg.find(end, at) + end.size() - at);
}

}  // namespace

std::string svg_with_facts(std::string svg, const DrawingFacts& facts) {
  const std::size_t begin = svg.find("<title>"), end = svg.find("</desc>"), root = svg.find("<svg");
  if (root == std::string::npos || begin == std::string::npos || end == std::string::npos || end < begin)
    no_such_drawing("an SVG without title and description");
  const std::string prefix = svg.substr(begin + 7, svg.find('<', begin + 7) - begin - 7);
  svg.replace(begin, end + 7 - begin,
              fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-desc\">{2}</desc>\n"
                          "<metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n  <dc:creator>{3}</dc:creator>\n"
                          "  <dc:source>{4}</dc:source>\n</metadata>",
                          facts.name, escaped(facts.title), escaped(facts.caption), program(), escaped(facts.made_by)));
  svg.insert(root + 4, fmt::format(" role=\"img\" aria-labelledby=\"{0}-title {0}-desc\"", facts.name));
  remove_series_titles(svg, prefix);
  for (const std::string_view quote : {"'", "\""}) {
    for (const std::string_view id : {"gpDot", "gpPt", "gpPat", "textbox", "greybox", "gnuplot_canvas"})
      replace_all(svg, fmt::format("id={}{}", quote, id), fmt::format("id={}{}-{}", quote, facts.name, id));
  }
  for (const std::string_view id : {"gpDot", "gpPt"})
    replace_all(svg, fmt::format("href='#{}", id), fmt::format("href='#{}-{}", facts.name, id));
  for (const std::string_view id : {"gpPat", "textbox", "greybox"})
    replace_all(svg, fmt::format("url(#{}", id), fmt::format("url(#{}-{}", facts.name, id));
  replace_all(svg, "font-family=\"sans-serif:Bold\"", "font-family=\"sans-serif\" font-weight=\"bold\"");
  return svg;
}

std::string svg_in_colour_of_page(std::string svg, std::string_view ink, std::string_view faded,
                                  std::string_view grid) {
  struct Shade {
    std::string_view colour;
    std::string_view opacity;
  };
  for (const Shade& shade : {Shade{ink, "1"}, Shade{faded, "0.65"}, Shade{grid, "0.16"}}) {
    const auto [red, green, blue] = parts_of(shade.colour);
    replace_all(svg, fmt::format("stroke='rgb({:3}, {:3}, {:3})'", red, green, blue),
                fmt::format("stroke='currentColor' stroke-opacity='{}'", shade.opacity));
    replace_all(svg, fmt::format("rgb({:3}, {:3}, {:3})", red, green, blue), "currentColor");
    replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), "currentColor");
  }
  replace_all(svg, "<g fill=\"none\" color=\"black\"", "<g fill=\"none\"");
  return svg;
}

}  // namespace specdec::render
