#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace specdec::render {

/// The program with which a browser recomputes the plan: the built page script, and the values it starts from.
struct PageProgram {
  std::string script;
  /// The source expression of Content-Security-Policy that allows it, "'sha256-...'".
  std::string allowed_by;
  nlohmann::ordered_json start;
  /// page_chart_json of the figures, in their order.
  nlohmann::ordered_json charts;
};

/// The rows of a table of an answer, each an object of numbers and texts.
struct PageTable {
  std::string caption;
  nlohmann::ordered_json rows;
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
  /// The JSON output of the command that gives the answer.
  nlohmann::ordered_json answer;
  /// The command's text for an answer that is no plan, and its tables, in place of a plan's sections.
  std::string text;
  std::vector<PageTable> tables;
  /// Output of `specdec analyze --format json` and its words, where there is a recording.
  nlohmann::ordered_json analysis;
  std::vector<std::string> analysis_words;
  /// figure_html of each.
  std::vector<std::string> figures;
  std::optional<PageProgram> program;
};

/// One HTML file that asks for nothing else: a document with headings, tables and drawings, readable without script.
std::string html_of(const AnswerPage& page);

}  // namespace specdec::render
