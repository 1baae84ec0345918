#include "render/figures/drawing.hpp"

#include <utility>

#include "render/figures/drawing_facts.hpp"
#include "render/figures/drawing_theme.hpp"
#include "render/figures/gnuplot.hpp"
#include "render/figures/gnuplot_script.hpp"

namespace specdec::render {

std::string drawing_of(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  std::string drawn = run_gnuplot(gnuplot_script(chart, style, made_by));
  if (style.kind != DrawingKind::svg) return drawn;
  drawn = svg_with_facts(std::move(drawn), {chart.name, chart.title, chart.caption, std::string(made_by)});
  if (style.theme != DrawingTheme::page) return drawn;
  const DrawingPalette& colours = palette_of(style.theme);
  return svg_in_colour_of_page(std::move(drawn), colours.ink, colours.faded, colours.grid);
}

}  // namespace specdec::render
