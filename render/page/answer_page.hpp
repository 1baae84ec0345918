#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "render/page/chart_page.hpp"

namespace specdec::render {

/// What a browser recomputes the plan with: the built page script, and what it starts from.
struct PageProgram {
  std::string script;
  nlohmann::ordered_json start;
};

/// Everything that stands on the page of one plan.
struct AnswerPage {
  /// What the plan is of, for the title: "llama-3.3-70b with eagle3-llama-3.3-70b on 4 h100-sxm".
  std::string subject;
  std::string version;
  /// That makes the page again.
  std::string command;
  /// "2026-03-01".
  std::string made_on;
  /// A paragraph each, the recommendation first.
  std::vector<std::string> words;
  /// The output of `specdec plan --format json`.
  nlohmann::ordered_json plan;
  /// Of `specdec analyze --format json` and its words, where there is a recording.
  nlohmann::ordered_json analysis;
  std::vector<std::string> analysis_words;
  std::vector<PageChart> charts;
  std::optional<PageProgram> program;
};

/// One HTML file that asks for nothing else: a document with headings, tables and drawings, readable without script.
std::string html_of(const AnswerPage& page);

}  // namespace specdec::render
