#include "render/figures/chart_data.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "render/figures/chart_looks.hpp"
#include "render/json_values.hpp"
#include "render/step_figure.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using nlohmann::ordered_json;

std::string title_of(const ChartPanel& panel) { return panel.title.empty() ? panel.y.label : panel.title; }

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

/// Indices of at most rows_printed of `count` rows, evenly spaced, first and last among them.
std::vector<std::size_t> printed_rows(std::size_t count) {
  std::vector<std::size_t> rows;
  const std::size_t printed = std::min(count, rows_printed);
  for (std::size_t i = 0; i < printed; ++i)
    rows.push_back(printed == 1 ? 0 : (i * (count - 1) + (printed - 1) / 2) / (printed - 1));
  return rows;
}

std::string note_of_rows(std::size_t count) {
  return count <= rows_printed ? "" : fmt::format("({} of {} rows)\n", rows_printed, count);
}

std::string cell_text(const ChartAxis& axis, double value) {
  if (std::isnan(value)) return "-";
  if (!axis.categories.empty()) return visible(axis.categories[static_cast<std::size_t>(std::lround(value))]);
  return std::isfinite(value) && value == std::round(value) && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                                                     : in_column(value);
}

/// True for series that can be a column of y beside the x that all of them share.
bool is_column(const ChartSeries& s) {
  const bool has_one_y = s.mark == ChartMark::line || s.mark == ChartMark::steps || s.mark == ChartMark::points ||
                         s.mark == ChartMark::bars;
  return has_one_y && s.low.empty();
}

std::string shared_table(const ChartPanel& panel, const std::vector<const ChartSeries*>& series) {
  const std::vector<double>& x = series.front()->x;
  std::vector<Column<std::size_t>> columns = {{panel.x.key,
                                               {panel.x.categories.empty() ? Align::right : Align::left},
                                               [&](std::size_t i) { return cell_text(panel.x, x[i]); }}};
  for (const ChartSeries* const s : series) {
    columns.push_back({s->name.empty() ? panel.y.key : visible(s->name),
                       [&panel, s](std::size_t i) { return cell_text(panel.y, s->y[i]); }});
  }
  return text_of(make_table(printed_rows(x.size()), columns)) + note_of_rows(x.size());
}

std::string own_table(const ChartPanel& panel, const ChartSeries& s) {
  std::vector<ordered_json> rows;
  for (const std::size_t i : printed_rows(length_of(s))) rows.push_back(mark_json(panel, s, i));
  const ordered_json keys = mark_json(panel, s, 0);
  std::vector<Column<ordered_json>> columns;
  for (const auto& [key, first] : keys.items()) {
    const auto cell = [key = key](const ordered_json& row) {
      const ordered_json& value = row.at(key);
      return value.is_null()     ? "-"
             : value.is_string() ? visible(value.get<std::string>())
                                 : cell_text(ChartAxis{}, value.get<double>());
    };
    columns.push_back({key, {first.is_string() ? Align::left : Align::right}, cell});
  }
  const std::string name = s.name.empty() ? std::string(name_of(s.mark)) : visible(s.name);
  return fmt::format("{}:\n{}{}", name, text_of(make_table(rows, columns)), note_of_rows(length_of(s)));
}

std::string panel_text(const ChartPanel& panel) {
  std::vector<const ChartSeries*> shared;
  for (const ChartSeries& s : panel.series) {
    if (is_column(s) && (shared.empty() || shared.front()->x == s.x)) shared.push_back(&s);
  }
  std::string text = shared.empty() ? "" : shared_table(panel, shared);
  for (const ChartSeries& s : panel.series) {
    if (std::find(shared.begin(), shared.end(), &s) != shared.end()) continue;
    if (!text.empty()) text += '\n';
    text += own_table(panel, s);
  }
  return text;
}

}  // namespace

ordered_json chart_json(const Chart& chart) {
  ordered_json panels = ordered_json::array();
  ordered_json data = ordered_json::array();
  const std::vector<std::string> columns = columns_of(chart);
  const ChartLooks looks = looks_of(chart.panels);
  for (std::size_t p = 0; p < chart.panels.size(); ++p) {
    const ChartPanel& panel = chart.panels[p];
    ordered_json series = ordered_json::array();
    for (std::size_t number = 0; number < panel.series.size(); ++number) {
      const ChartSeries& s = panel.series[number];
      series.push_back({{"name", s.name},
                        {"mark", name_of(s.mark)},
                        {"role", name_of(s.role)},
                        {"look", looks[p][number].number},
                        {"marks", length_of(s)}});
      for (std::size_t i = 0; i < length_of(s); ++i) {
        ordered_json& row =
            data.emplace_back(ordered_json{{"panel", title_of(panel)}, {"series", s.name}, {"mark", name_of(s.mark)}});
        for (const std::string& column : columns) row[column] = nullptr;
        row.update(mark_json(panel, s, i));
      }
    }
    panels.push_back({{"title", panel.title},
                      {"x", axis_facts(panel.x)},
                      {"y", axis_facts(panel.y)},
                      {"z", panel.z ? axis_facts(*panel.z) : ordered_json()},
                      {"series", std::move(series)}});
  }
  return {{"figure",
           {{"name", chart.name},
            {"title", chart.title},
            {"caption", chart.caption},
            {"columns", chart.columns},
            {"panels", std::move(panels)}}},
          {"data", std::move(data)}};
}

std::string chart_text(const Chart& chart) {
  std::string text;
  for (const ChartPanel& panel : chart.panels) {
    text += '\n';
    if (chart.panels.size() > 1) text += visible(title_of(panel)) + '\n';
    text += panel_text(panel);
  }
  return text;
}

}  // namespace specdec::render
