#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Rendering of answers as JSON, CSV and text.
namespace specdec::render {

/// An array of objects within the JSON output that `--format csv` can print. The pointer "/points/*/rows" stands for
/// the rows of all points, one after the other, each with the point's `keys` in front.
struct CsvTable {
  std::string name;
  std::string json_pointer;
  std::vector<std::string> keys = {};
};

/// The rows of a table of the output. Keys with tables of their own, here "rows" of "/points", are left out.
nlohmann::ordered_json rows_of(nlohmann::ordered_json document, const CsvTable& table,
                               const std::vector<CsvTable>& all_tables);

/// An array of objects as CSV: one header line, nested objects as `outer_inner`, intervals as `_low` and `_high`,
/// arrays of objects left out, others in one cell separated by semicolons, null as an empty cell. Columns in order of
/// first appearance; what is null in some rows, or in all and not in `if_empty`, also an array of objects, has the
/// columns of what it is elsewhere. Without rows the header line is that of `if_empty`.
std::string to_csv(const nlohmann::ordered_json& rows,
                   const nlohmann::ordered_json& if_empty = nlohmann::ordered_json::array());

}  // namespace specdec::render
