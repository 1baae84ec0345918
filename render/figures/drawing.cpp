#include "render/figures/drawing.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <utility>

#include "render/figures/drawing_theme.hpp"
#include "render/figures/gnuplot.hpp"
#include "render/figures/gnuplot_script.hpp"
#include "render/step_figure.hpp"
#include "render/version.hpp"

namespace specdec::render {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Removes the titles that gnuplot gives to each series, which browsers would show at the pointer.
void remove_series_titles(std::string& svg, const std::string& prefix) {
  const std::string begin = fmt::format("<title>{}_plot_", prefix), end = "</title>";
  for (std::size_t at = 0; (at = svg.find(begin, at)) != std::string::npos;)
    svg.erase(at, svg.find(end, at) + end.size() - at);
}

/// gnuplot's SVG with title and description, which screen readers read, and the command as Dublin Core metadata; its
/// ids begin with the figure's name, so that one page can hold several.
/// @param made_by  the command
std::string svg_with_facts(std::string svg, const Chart& chart, std::string_view made_by) {
  const std::size_t begin = svg.find("<title>"), end = svg.find("</desc>"), root = svg.find("<svg");
  if (root == std::string::npos || begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error("gnuplot's drawing is not as expected: an SVG without title and description");
  const std::string prefix = svg.substr(begin + 7, svg.find('<', begin + 7) - begin - 7);
  svg.replace(
      begin, end + 7 - begin,
      fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-desc\">{2}</desc>\n"
                  "<metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n  <dc:creator>specdec {3}</dc:creator>\n"
                  "  <dc:source>{4}</dc:source>\n</metadata>",
                  chart.name, escaped(chart.title), escaped(chart.caption), version(), escaped(made_by)));
  svg.insert(root + 4, fmt::format(" role=\"img\" aria-labelledby=\"{0}-title {0}-desc\"", chart.name));
  remove_series_titles(svg, prefix);
  for (const std::string_view quote : {"'", "\""}) {
    for (const std::string_view id : {"gpDot", "gpPt", "gpPat", "textbox", "greybox", "gnuplot_canvas"})
      replace_all(svg, fmt::format("id={}{}", quote, id), fmt::format("id={}{}-{}", quote, chart.name, id));
  }
  for (const std::string_view id : {"gpDot", "gpPt"})
    replace_all(svg, fmt::format("href='#{}", id), fmt::format("href='#{}-{}", chart.name, id));
  for (const std::string_view id : {"gpPat", "textbox", "greybox"})
    replace_all(svg, fmt::format("url(#{}", id), fmt::format("url(#{}-{}", chart.name, id));
  replace_all(svg, "font-family=\"sans-serif:Bold\"", "font-family=\"sans-serif\" font-weight=\"bold\"");
  return svg;
}

/// An SVG whose text and axes take the colour of the surrounding text: what is drawn in the theme's ink, faded and grid
/// becomes currentColor, the latter two with some opacity.
std::string svg_in_colour_of_page(std::string svg, const DrawingPalette& colours) {
  struct Shade {
    std::string_view colour;
    std::string_view opacity;
  };
  for (const Shade& shade : {Shade{colours.ink, "1"}, Shade{colours.faded, "0.65"}, Shade{colours.grid, "0.16"}}) {
    unsigned rgb = 0;
    std::from_chars(shade.colour.data() + 1, shade.colour.data() + shade.colour.size(), rgb, 16);
    const unsigned red = rgb >> 16U, green = rgb >> 8U & 255U, blue = rgb & 255U;
    replace_all(svg, fmt::format("stroke='rgb({:3}, {:3}, {:3})'", red, green, blue),
                fmt::format("stroke='currentColor' stroke-opacity='{}'", shade.opacity));
    replace_all(svg, fmt::format("rgb({:3}, {:3}, {:3})", red, green, blue), "currentColor");
    replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), "currentColor");
  }
  replace_all(svg, "<g fill=\"none\" color=\"black\"", "<g fill=\"none\"");
  return svg;
}

}  // namespace

std::string drawing_of(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  std::string drawn = run_gnuplot(gnuplot_script(chart, style, made_by));
  if (style.kind != DrawingKind::svg) return drawn;
  drawn = svg_with_facts(std::move(drawn), chart, made_by);
  if (style.theme != DrawingTheme::page) return drawn;
  return svg_in_colour_of_page(std::move(drawn), palette_of(style.theme));
}

}  // namespace specdec::render
