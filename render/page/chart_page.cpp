#include "render/page/chart_page.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "render/figures/chart_looks.hpp"
#include "render/json_values.hpp"
#include "render/page/html.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using nlohmann::ordered_json;

/// Rows of one table; of longer series evenly spaced ones are shown.
constexpr std::size_t most_rows = 200;

std::string cell_of(const ChartAxis& axis, double value) {
  if (!std::isfinite(value)) return "-";
  if (!axis.categories.empty()) return axis.categories[static_cast<std::size_t>(std::lround(value))];
  return value == std::round(value) && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value) : in_column(value);
}

/// One column of a table of data: its heading and the series' vector.
struct DataColumn {
  const ChartAxis* axis;
  std::string heading;
  const std::vector<double>* values;
};

std::string data_table(const std::string& caption, const std::vector<DataColumn>& data,
                       const std::vector<std::string>& labels) {
  const std::size_t count = data.front().values->size();
  const std::size_t step = (count + most_rows - 1) / most_rows;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < count; row += step) rows.push_back(row);
  std::vector<Column<std::size_t>> columns;
  for (const DataColumn& column : data) {
    columns.push_back({column.heading,
                       {.align = column.axis->categories.empty() ? Align::right : Align::left, .title = column.heading},
                       [column](std::size_t row) { return cell_of(*column.axis, (*column.values)[row]); }});
  }
  columns.push_back({"label",
                     {.align = Align::left, .shown = !labels.empty(), .title = "label"},
                     [&labels](std::size_t row) { return labels[row]; }});
  return html_of(make_table(rows, columns, step > 1 ? fmt::format("{} (every {}th row)", caption, step) : caption));
}

/// Lines and points over the x of the first one stand side by side.
std::string panel_tables(const ChartPanel& panel, const std::string& title) {
  std::vector<DataColumn> shared;
  std::vector<const ChartSeries*> alone;
  const std::vector<double>* x = nullptr;
  for (const ChartSeries& s : panel.series) {
    if (s.x.empty() || s.name.empty() || !s.x_low.empty() || !s.z.empty() || s.y.size() + s.low.size() == 0) continue;
    if (x == nullptr) {
      x = &s.x;
      shared.push_back({&panel.x, panel.x.label, x});
    }
    if (s.x != *x) {
      alone.push_back(&s);
      continue;
    }
    if (!s.y.empty()) shared.push_back({&panel.y, s.name, &s.y});
    if (s.low.empty()) continue;
    shared.push_back({&panel.y, s.name + ", low", &s.low});
    shared.push_back({&panel.y, s.name + ", high", &s.high});
  }
  std::string html = shared.empty() ? "" : data_table(title, shared, {});
  for (const ChartSeries* s : alone) {
    std::vector<DataColumn> columns = {{&panel.x, panel.x.label, &s->x}};
    if (!s->y.empty()) columns.push_back({&panel.y, panel.y.label, &s->y});
    if (!s->low.empty()) {
      columns.push_back({&panel.y, panel.y.label + ", low", &s->low});
      columns.push_back({&panel.y, panel.y.label + ", high", &s->high});
    }
    html += data_table(s->name, columns, s->labels);
  }
  for (const ChartSeries& s : panel.series) {
    if (s.z.empty()) continue;
    html += data_table(
        s.name.empty() ? title : s.name,
        {{&panel.x, panel.x.label, &s.x}, {&panel.y, panel.y.label, &s.y}, {&*panel.z, panel.z->label, &s.z}}, {});
  }
  return html;
}

ordered_json numbers(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (const double value : values) list.push_back(std::isfinite(value) ? ordered_json(value) : ordered_json());
  return list;
}

ordered_json axis_json(const ChartAxis& axis) {
  return {{"label", axis.label},
          {"logarithmic", axis.scale == AxisScale::logarithmic},
          {"low", number_or_null(axis.low)},
          {"high", number_or_null(axis.high)},
          {"categories", axis.categories}};
}

}  // namespace

std::string figure_html(const PageChart& shown) {
  const Chart& chart = shown.chart;
  std::string data;
  for (const ChartPanel& panel : chart.panels) {
    data += panel_tables(panel, panel.title.empty() ? panel.y.label : panel.title);
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

ordered_json page_chart_json(const Chart& chart) {
  const ChartLooks looks = looks_of(chart.panels);
  ordered_json panels = ordered_json::array();
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const ChartPanel& panel = chart.panels[p];
    ordered_json series = ordered_json::array();
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const ChartSeries& s = panel.series[i];
      ordered_json one = {
          {"name", s.name}, {"mark", name_of(s.mark)}, {"role", name_of(s.role)}, {"colour", looks[p][i].number}};
      const std::pair<const char*, const std::vector<double>*> vectors[] = {
          {"x", &s.x},         {"y", &s.y},           {"low", &s.low}, {"high", &s.high},
          {"x_low", &s.x_low}, {"x_high", &s.x_high}, {"z", &s.z}};
      for (const auto& [key, values] : vectors) {
        if (!values->empty()) one[key] = numbers(*values);
      }
      if (!s.labels.empty()) one["labels"] = s.labels;
      series.push_back(std::move(one));
    }
    panels.push_back({{"title", panel.title},
                      {"x", axis_json(panel.x)},
                      {"y", axis_json(panel.y)},
                      {"z", panel.z ? axis_json(*panel.z) : ordered_json()},
                      {"series", std::move(series)}});
  }
  return {{"name", chart.name},
          {"title", chart.title},
          {"caption", chart.caption},
          {"columns", chart.columns},
          {"panels", std::move(panels)}};
}

}  // namespace specdec::render
