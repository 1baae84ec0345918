#include "render/page/chart_page.hpp"

#include <fmt/format.h>

#include "render/figures/chart_data.hpp"
#include "render/page/html.hpp"
#include "render/step_figure.hpp"

namespace specdec::render {

std::string figure_html(const PageChart& shown) {
  constexpr std::size_t most_rows = 200;
  const Chart& chart = shown.chart;
  std::string data;
  for (ChartPanel panel : chart.panels) {
    // Reference lines and boxes say nothing that the others and the caption do not.
    std::erase_if(panel.series, [](const ChartSeries& s) {
      const bool has_values = !s.y.empty() || !s.low.empty();
      return s.z.empty() && (s.x.empty() || s.name.empty() || !s.x_low.empty() || !has_values);
    });
    for (const Table& table : data_tables(panel, title_of(panel), most_rows)) data += html_of(table);
  }
  std::string html = fmt::format("<figure id=\"figure-{}\">\n<h3>{}</h3>\n", escaped(chart.name), escaped(chart.title));
  html += fmt::format("<div class=\"drawing\" data-chart=\"{}\">{}</div>\n", escaped(chart.name), shown.drawing);
  html += fmt::format("<figcaption>{}", escaped(chart.caption));
  for (const Note& warning : chart.warnings) {
    html += fmt::format(" <span class=\"note\">Note: {}.</span>", escaped(warning.message));
  }
  html += "</figcaption>\n";
  if (!data.empty()) {
    html += fmt::format("<details{}><summary>Data of this figure</summary>\n{}</details>\n",
                        shown.drawing.empty() ? " open" : "", data);
  }
  return html + "</figure>\n";
}

}  // namespace specdec::render
