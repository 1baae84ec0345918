#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/assumption.hpp"
#include "render/page/page_sections.hpp"
#include "render/table.hpp"
#include "traces/note.hpp"

namespace specdec::render {

/// The program with which a browser recomputes the plan: the built page script, and the values it starts from.
struct PageProgram {
  std::string script;
  /// The source expression of Content-Security-Policy that allows it, "'sha256-...'".
  std::string allowed_by;
  nlohmann::ordered_json start;
  /// figure_json of the figures, in their order.
  nlohmann::ordered_json charts;
};

/// Everything that stands on the page of one answer.
struct AnswerPage {
  /// For the title: "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm".
  std::string subject;
  std::string version;
  /// The command that makes the page again; empty if there is none.
  std::string command;
  /// "2026-03-01".
  std::string made_on;
  /// A paragraph each, the recommendation first.
  std::vector<std::string> words;
  std::vector<Note> warnings;
  /// Of a plan; empty for any other answer.
  std::optional<PlanSections> plan;
  /// The command's text for an answer that is no plan, and its tables.
  std::string text;
  std::vector<Table> tables;
  /// recording_section, where there is a recording.
  std::string recording;
  /// figure_html of each.
  std::vector<std::string> figures;
  std::vector<planner::Assumption> assumptions;
  /// "inputs" of the JSON output: the options in effect, and the files and presets that were used.
  nlohmann::ordered_json inputs;
  std::optional<PageProgram> program;
};

/// A table of rows of the JSON output, each an object: its columns are the keys that some row has a value for.
Table table_of_rows(const std::string& caption, const nlohmann::ordered_json& rows);

/// One HTML file that asks for nothing else: a document with headings, tables and drawings, readable without script.
std::string html_of(const AnswerPage& page);

}  // namespace specdec::render
