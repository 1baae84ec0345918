#include "render/figures/chart_data.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "render/figures/chart_looks.hpp"
#include "render/json_values.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using nlohmann::ordered_json;

ordered_json place_json(const ChartAxis& axis, double value) {
  if (!std::isfinite(value)) return nullptr;
  if (axis.categories.empty()) return value;
  return axis.categories[static_cast<std::size_t>(std::lround(value))];
}

ordered_json axis_facts(const ChartAxis& axis) {
  return {{"key", axis.key},
          {"label", axis.label},
          {"scale", name_of(axis.scale)},
          {"low", number_or_null(axis.low)},
          {"high", number_or_null(axis.high)},
          {"categories", axis.categories}};
}

/// The columns of one mark, without those that it lacks.
ordered_json mark_json(const ChartPanel& panel, const ChartSeries& s, std::size_t i) {
  ordered_json row = ordered_json::object();
  const auto put = [&](const std::string& key, const std::vector<double>& values) {
    if (!values.empty()) row[key] = std::isfinite(values[i]) ? ordered_json(values[i]) : ordered_json();
  };
  if (!s.x.empty()) row[panel.x.key] = place_json(panel.x, s.x[i]);
  put(panel.x.key + "_low", s.x_low);
  put(panel.x.key + "_high", s.x_high);
  if (!s.y.empty()) row[panel.y.key] = place_json(panel.y, s.y[i]);
  put(panel.y.key + "_low", s.low);
  put(panel.y.key + "_high", s.high);
  if (!s.z.empty()) row[panel.z->key] = place_json(*panel.z, s.z[i]);
  if (!s.labels.empty()) row["label"] = s.labels[i];
  return row;
}

void put_marks(const ChartSeries& s, ordered_json& json) {
  const std::pair<const char*, const std::vector<double>*> vectors[] = {
      {"x", &s.x},         {"y", &s.y},           {"low", &s.low}, {"high", &s.high},
      {"x_low", &s.x_low}, {"x_high", &s.x_high}, {"z", &s.z}};
  for (const auto& [key, values] : vectors) {
    if (values->empty()) continue;
    ordered_json& list = json[key] = ordered_json::array();
    for (const double value : *values) list.push_back(std::isfinite(value) ? ordered_json(value) : ordered_json());
  }
  if (!s.labels.empty()) json["labels"] = s.labels;
}

/// Names of all columns that some mark has, each x before each y.
std::vector<std::string> columns_of(const Chart& chart) {
  std::vector<std::string> columns;
  const auto add = [&](const std::string& key, bool is_used) {
    if (is_used && std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
  };
  const auto any = [](const ChartPanel& panel, auto member) {
    return std::any_of(panel.series.begin(), panel.series.end(),
                       [member](const ChartSeries& s) { return !(s.*member).empty(); });
  };
  for (const ChartPanel& panel : chart.panels) {
    add(panel.x.key, any(panel, &ChartSeries::x));
    add(panel.x.key + "_low", any(panel, &ChartSeries::x_low));
    add(panel.x.key + "_high", any(panel, &ChartSeries::x_high));
  }
  for (const ChartPanel& panel : chart.panels) {
    add(panel.y.key, any(panel, &ChartSeries::y));
    add(panel.y.key + "_low", any(panel, &ChartSeries::low));
    add(panel.y.key + "_high", any(panel, &ChartSeries::high));
    if (panel.z) add(panel.z->key, any(panel, &ChartSeries::z));
  }
  for (const ChartPanel& panel : chart.panels) add("label", any(panel, &ChartSeries::labels));
  return columns;
}

// ----------------------------------------------------------------------------------------------------- for people

constexpr std::size_t rows_printed = 25;

/// Indices of at most `most` of `count` rows, evenly spaced, first and last among them.
std::vector<std::size_t> shown_rows(std::size_t count, std::size_t most) {
  std::vector<std::size_t> rows;
  const std::size_t shown = std::min(count, most);
  for (std::size_t i = 0; i < shown; ++i)
    rows.push_back(shown == 1 ? 0 : (i * (count - 1) + (shown - 1) / 2) / (shown - 1));
  return rows;
}

std::string caption_of(const std::string& name, std::size_t count, std::size_t most) {
  if (count <= most) return name;
  return fmt::format("{}{}({} of {} rows)", name, name.empty() ? "" : " ", most, count);
}

std::string cell_text(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  const auto number = value.get<double>();
  return number == std::round(number) && std::abs(number) < 1e6 ? fmt::format("{:.0f}", number) : in_column(number);
}

std::string cell_of(const ChartAxis& axis, double value) {
  return std::isinf(value) ? in_column(value) : cell_text(place_json(axis, value));
}

/// A key of mark_json on a page: "speedup over plain decoding, low".
std::string title_of(const ChartPanel& panel, const std::string& key) {
  for (const ChartAxis& axis : {panel.x, panel.y, panel.z.value_or(panel.y)}) {
    if (key == axis.key) return axis.label;
    for (const std::string end : {"low", "high"})
      if (key == axis.key + '_' + end) return axis.label + ", " + end;
  }
  return key;
}

/// True for series that can be a column of y beside the x that all of them share.
bool is_column(const ChartSeries& s) {
  const bool has_one_y = s.mark == ChartMark::line || s.mark == ChartMark::steps || s.mark == ChartMark::points ||
                         s.mark == ChartMark::bars;
  return has_one_y && s.low.empty();
}

Table shared_table(const ChartPanel& panel, const std::vector<const ChartSeries*>& series, const std::string& name,
                   std::size_t most) {
  const std::vector<double>& x = series.front()->x;
  std::vector<Column<std::size_t>> columns = {
      {panel.x.key,
       {.align = panel.x.categories.empty() ? Align::right : Align::left, .title = panel.x.label},
       [&](std::size_t i) { return cell_of(panel.x, x[i]); }}};
  for (const ChartSeries* const s : series) {
    const std::string& heading = s->name.empty() ? panel.y.key : s->name;
    columns.push_back({heading, {.title = heading}, [&panel, s](std::size_t i) { return cell_of(panel.y, s->y[i]); }});
  }
  return make_table(shown_rows(x.size(), most), columns, caption_of(name, x.size(), most));
}

Table own_table(const ChartPanel& panel, const ChartSeries& s, std::size_t most) {
  std::vector<ordered_json> rows;
  for (const std::size_t i : shown_rows(length_of(s), most)) rows.push_back(mark_json(panel, s, i));
  std::vector<Column<ordered_json>> columns;
  const ordered_json keys = mark_json(panel, s, 0);
  for (const auto& [key, first] : keys.items()) {
    columns.push_back({key,
                       {.align = first.is_string() ? Align::left : Align::right, .title = title_of(panel, key)},
                       [key = key](const ordered_json& row) { return cell_text(row.at(key)); }});
  }
  return make_table(rows, columns,
                    caption_of(s.name.empty() ? std::string(name_of(s.mark)) : s.name, length_of(s), most));
}

}  // namespace

std::string title_of(const ChartPanel& panel) { return panel.title.empty() ? panel.y.label : panel.title; }

std::vector<Table> data_tables(const ChartPanel& panel, const std::string& name, std::size_t most) {
  std::vector<const ChartSeries*> shared;
  for (const ChartSeries& s : panel.series) {
    if (is_column(s) && (shared.empty() || shared.front()->x == s.x)) shared.push_back(&s);
  }
  std::vector<Table> tables;
  if (!shared.empty()) tables.push_back(shared_table(panel, shared, name, most));
  for (const ChartSeries& s : panel.series) {
    if (std::find(shared.begin(), shared.end(), &s) == shared.end()) tables.push_back(own_table(panel, s, most));
  }
  return tables;
}

ordered_json figure_json(const Chart& chart, bool with_marks) {
  ordered_json panels = ordered_json::array();
  const ChartLooks looks = looks_of(chart.panels);
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const ChartPanel& panel = chart.panels[p];
    ordered_json series = ordered_json::array();
    for (std::size_t number = 0; number < panel.series.size(); ++number) {
      const ChartSeries& s = panel.series[number];
      ordered_json& one = series.emplace_back(ordered_json{{"name", s.name},
                                                           {"mark", name_of(s.mark)},
                                                           {"role", name_of(s.role)},
                                                           {"look", looks[p][number].number},
                                                           {"marks", length_of(s)}});
      if (with_marks) put_marks(s, one);
    }
    panels.push_back({{"title", panel.title},
                      {"x", axis_facts(panel.x)},
                      {"y", axis_facts(panel.y)},
                      {"z", panel.z ? axis_facts(*panel.z) : ordered_json()},
                      {"series", std::move(series)}});
  }
  return {{"name", chart.name},
          {"title", chart.title},
          {"caption", chart.caption},
          {"columns", chart.columns},
          {"panels", std::move(panels)}};
}

ordered_json chart_json(const Chart& chart) {
  ordered_json data = ordered_json::array();
  const std::vector<std::string> columns = columns_of(chart);
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& s : panel.series) {
      for (std::size_t i = 0; i < length_of(s); ++i) {
        ordered_json& row =
            data.emplace_back(ordered_json{{"panel", title_of(panel)}, {"series", s.name}, {"mark", name_of(s.mark)}});
        for (const std::string& column : columns) row[column] = nullptr;
        row.update(mark_json(panel, s, i));
      }
    }
  }
  return {{"figure", figure_json(chart, false)}, {"data", std::move(data)}};
}

std::string chart_text(const Chart& chart) {
  std::string text;
  for (const ChartPanel& panel : chart.panels) {
    text += '\n';
    if (chart.panels.size() > 1) text += visible(title_of(panel)) + '\n';
    std::string_view between;
    for (const Table& table : data_tables(panel, "", rows_printed)) {
      text += between;
      if (!table.caption.empty()) text += visible(table.caption) + ":\n";
      text += text_of(table);
      between = "\n";
    }
  }
  return text;
}

}  // namespace specdec::render
