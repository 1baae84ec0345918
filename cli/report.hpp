#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cli {

/// Something that the answer rests on, with where its value came from: "user", "file", "preset" or "default".
struct Assumption {
  std::string name;
  nlohmann::ordered_json value;
  std::string source;
};

/// Something that the reader should know about the answer; `code` is stable, for scripts.
struct Warning {
  std::string code;
  std::string message;
  bool json_only = false;  // explains a null that the text does not show
};

/// An array of objects within the JSON output that `--format csv` can print. The pointer "/points/*/rows" stands for
/// the rows of all points, one after the other, each with the point's `keys` in front.
struct CsvTable {
  std::string name;
  std::string json_pointer;
  std::vector<std::string> keys = {};
};

/// What a command found, as data and as text. The frame adds the envelope and writes it.
struct Report {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  /// Adds keys behind those of `json` where JSON or CSV is asked for; for output too large to be made in vain.
  std::function<void(nlohmann::ordered_json&)> more_json;
  std::string text;
  std::vector<Assumption> assumptions;
  std::vector<Warning> warnings;
  /// file_facts of the files that were read; stand in "inputs" as "files" where there are any.
  std::vector<nlohmann::ordered_json> files;
  /// {"kind", "name", "sources"} of the program's own figures that were used; stand there as "presets".
  std::vector<nlohmann::ordered_json> presets;
  /// The command's tables, all of them, where this run has them elsewhere in the JSON output or in another order.
  std::vector<CsvTable> tables;
  /// A row of a table, by its name: of which keys its CSV has the columns where this run has no row of it.
  std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty;
  /// What --output gets, byte by byte, where that is not the report itself, for instance a drawing; the report then
  /// goes to standard output.
  std::optional<std::string> file;
  int exit_code = 0;
};

/// The rows of a table of the output. Keys that hold tables of their own, here "rows" of "/points", are left out.
nlohmann::ordered_json rows_of(const nlohmann::ordered_json& document, const CsvTable& table,
                               const std::vector<CsvTable>& all_tables);

/// Sets `object[key]`; where the value is not finite, null and the reason in `key_note`.
void put_number(nlohmann::ordered_json& object, const std::string& key, double value);

/// null where there is no value.
nlohmann::ordered_json number_or_null(const std::optional<double>& value);

/// The envelope that every command's JSON output has, with the command's own keys after it. The schema of the command
/// "trace info" is "specdec.trace.info/1".
nlohmann::ordered_json with_envelope(std::string_view command, const nlohmann::ordered_json& inputs,
                                     const Report& report);

/// An array of objects as CSV: one header line, nested objects as `outer_inner`, intervals as `_low` and `_high`,
/// other arrays in one cell separated by semicolons, null as an empty cell. Columns in order of first appearance. Of
/// an array of numbers the columns are `row`, from 1, and `value`. Without rows the header line is that of `if_empty`,
/// an array of objects, too.
std::string to_csv(const nlohmann::ordered_json& rows,
                   const nlohmann::ordered_json& if_empty = nlohmann::ordered_json::array());

}  // namespace specdec::cli
