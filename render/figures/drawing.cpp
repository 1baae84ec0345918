#include "render/figures/drawing.hpp"

#include <utility>

#include "render/figures/drawing_facts.hpp"
#include "render/figures/drawing_theme.hpp"
#include "render/figures/gnuplot.hpp"
#include "render/figures/gnuplot_script.hpp"

namespace specdec::render {

std::string drawing_of(const Chart& chart, const DrawingStyle& style, std::string_view made_by) {
  std::string drawn = run_gnuplot(gnuplot_script(chart, style, made_by));
  const DrawingFacts facts = {chart.name, chart.title, chart.caption, std::string(made_by)};
  switch (style.kind) {
    case DrawingKind::svg: {
      drawn = svg_with_facts(std::move(drawn), facts);
      if (style.theme != DrawingTheme::page) return drawn;
      const DrawingPalette& colours = palette_of(style.theme);
      return svg_in_colour_of_page(std::move(drawn), colours.ink, colours.faded, colours.grid);
    }
    case DrawingKind::png:
      return png_with_facts(drawn, facts, 96 * style.pixels);
    case DrawingKind::pdf:
      return pdf_with_facts(std::move(drawn), facts);
    case DrawingKind::terminal:
      break;
  }
  return drawn;
}

}  // namespace specdec::render
