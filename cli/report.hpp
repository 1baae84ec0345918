#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/assumption.hpp"
#include "render/csv.hpp"
#include "render/json_values.hpp"
#include "render/spoken.hpp"
#include "traces/note.hpp"

namespace specdec::cli {

using planner::Assumption;
using render::CsvTable;
using render::number_or_null;
using render::or_null;
using render::pair_of;
using render::put_number;

/// The findings of a command, as data and as text. The frame adds the envelope and writes it.
struct Report {
  /// The schema of the JSON output, if it is not the command's: "analyze.part".
  std::string schema = {};
  /// Further entries of "inputs": options of earlier runs whose results this one takes up.
  nlohmann::ordered_json earlier_inputs = nlohmann::ordered_json::object();
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  /// Adds keys behind those of `json` where JSON or CSV is asked for; for output too large to be made in vain.
  std::function<void(nlohmann::ordered_json&)> more_json;
  render::Spoken spoken;
  /// The text is drawn for a terminal, by its control characters.
  bool is_drawn = false;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;
  /// file_facts of the files that were read; stand in "inputs" as "files" where there are any.
  std::vector<nlohmann::ordered_json> files;
  /// The program's own figures that were used; stand there as "presets".
  std::vector<planner::UsedPreset> presets;
  /// The command's tables, all of them, where this run has them elsewhere in the JSON output or in another order.
  std::vector<CsvTable> tables;
  /// A row of a table, by its name: of which keys its CSV has the columns where this run has no row of it.
  std::map<std::string, nlohmann::ordered_json, std::less<>> rows_of_empty;
  /// Texts that replace the answer where --table names one, by name, if the command shows tables in text.
  std::map<std::string, std::string, std::less<>> text_of_table;
  /// Content for --output, byte by byte, if that is not the report itself, for instance a drawing; the report then
  /// goes to standard output.
  std::optional<std::string> file;
  int exit_code = 0;
};

/// The report of an answer with the assumptions and warnings that it rests on, and presets if it has them.
template <class Answer>
Report report_on(const Answer& answer, nlohmann::ordered_json json, render::Spoken spoken) {
  Report report;
  report.json = std::move(json);
  report.spoken = std::move(spoken);
  report.assumptions = answer.assumptions;
  report.warnings = answer.warnings;
  if constexpr (requires { answer.presets; }) report.presets = answer.presets;
  return report;
}

/// The envelope that every command's JSON output has, with the command's own keys after it. The schema of the command
/// "trace info" is "specdec.trace.info/2".
/// @param report  gives up its JSON
nlohmann::ordered_json with_envelope(std::string_view command, const nlohmann::ordered_json& inputs, Report& report);

}  // namespace specdec::cli
