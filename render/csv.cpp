#include "render/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <utility>

#include "render/text.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using Cells = std::vector<std::pair<std::string, std::string>>;

/// What a spreadsheet would compute. Words of a command line, and a dash alone, are none.
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@\t\r").find(text.front()) == std::string_view::npos) return false;
  const bool option = text.starts_with("--") && text.size() > 2 && text[2] >= 'a' && text[2] <= 'z';
  return text != "-" && !option;
}

std::string csv_cell(const ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const ordered_json& item : value) items.push_back(csv_cell(item));
    return fmt::format("{}", fmt::join(items, ";"));
  }
  if (!value.is_string()) return value.dump();
  std::string text = visible(value.get<std::string>(), "\n\t");
  if (is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return fmt::format("\"{}\"", text);
}

bool is_interval(const std::string& key, const ordered_json& value) {
  const auto ends_in = [&](const std::string& word) { return key == word || key.ends_with('_' + word); };
  const bool is_pair = value.is_null() || (value.is_array() && value.size() == 2);
  return is_pair && (ends_in("ci95") || ends_in("bounds") || ends_in("interval"));
}

/// A list of objects is a table of its own, which no cell can hold.
bool is_table(const ordered_json& value) {
  return value.is_array() && std::any_of(value.begin(), value.end(), [](const auto& item) { return item.is_object(); });
}

/// Takes into `shape` what a row has where the rows before it have null.
void add_to_shape(const ordered_json& row, ordered_json& shape) {
  for (const auto& [key, value] : row.items()) {
    ordered_json& known = shape[key];
    if (known.is_null()) {
      known = value;
    } else if (known.is_object() && value.is_object()) {
      add_to_shape(value, known);
    }
  }
}

/// @param shape  says what is null in `object`, so that it has the same columns as where it is not
void flatten(const std::string& prefix, const ordered_json& object, const ordered_json& shape, Cells& cells) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    const ordered_json& of_all = shape.at(key);
    if (is_table(value) || is_table(of_all)) continue;
    if (value.is_object()) {
      flatten(name + "_", value, of_all, cells);
    } else if (value.is_null() && of_all.is_object()) {
      ordered_json nulls = of_all;
      for (ordered_json& item : nulls) item = nullptr;
      flatten(name + "_", nulls, of_all, cells);
    } else if (is_interval(key, value)) {
      cells.emplace_back(name + "_low", value.is_null() ? "" : csv_cell(value[0]));
      cells.emplace_back(name + "_high", value.is_null() ? "" : csv_cell(value[1]));
    } else {
      cells.emplace_back(name, csv_cell(value));
    }
  }
}

template <class Names>
std::string csv_line(const Names& cells) {
  return fmt::format("{}\n", fmt::join(cells, ","));
}

}  // namespace

ordered_json rows_of(ordered_json document, const CsvTable& table, const std::vector<CsvTable>& all_tables) {
  using Pointer = ordered_json::json_pointer;
  const std::string& path = table.json_pointer;
  if (const std::size_t each = path.find("/*/"); each != std::string::npos) {
    ordered_json rows = ordered_json::array();
    for (const ordered_json& outer : document.at(Pointer(path.substr(0, each)))) {
      for (const ordered_json& inner : outer.at(Pointer(path.substr(each + 2)))) {
        ordered_json& row = rows.emplace_back(ordered_json::object());
        for (const std::string& key : table.keys) row[key] = outer.at(key);
        row.update(inner);
      }
    }
    return rows;
  }
  const Pointer place(path);
  // A table of something that was not asked for has no rows.
  if (document.at(place.parent_pointer()).is_null()) return ordered_json::array();
  ordered_json rows = std::move(document.at(place));
  for (const CsvTable& other : all_tables) {
    if (!other.json_pointer.starts_with(path + "/*/")) continue;
    for (ordered_json& row : rows) row.erase(other.json_pointer.substr(path.size() + 3));
  }
  return rows;
}

std::string to_csv(const ordered_json& rows, const ordered_json& if_empty) {
  if (rows.empty() && !if_empty.empty()) {
    const std::string csv = to_csv(if_empty);
    return csv.substr(0, csv.find('\n') + 1);
  }
  ordered_json shape = ordered_json::object();
  for (const ordered_json& row : rows) add_to_shape(row, shape);
  for (const ordered_json& row : if_empty) add_to_shape(row, shape);
  std::vector<std::string> columns;
  const auto place_of = [&columns](const std::string& name) {
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  // Twice, since the cells of all rows would need many times what the text does.
  for (const ordered_json& row : rows) {
    Cells line;
    flatten("", row, shape, line);
    for (const auto& [name, cell] : line)
      if (place_of(name) == columns.size()) columns.push_back(name);
  }
  std::string csv = csv_line(columns);
  for (const ordered_json& row : rows) {
    Cells line;
    flatten("", row, shape, line);
    std::vector<std::string> cells(columns.size());
    for (auto& [name, cell] : line) cells[place_of(name)] = std::move(cell);
    csv += csv_line(cells);
  }
  return csv;
}

}  // namespace specdec::render
