#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "planner/assumption.hpp"
#include "planner/decision.hpp"
#include "render/table.hpp"
#include "traces/note.hpp"

namespace specdec::render {

/// An answer in the order in which it is read.
struct Spoken {
  /// The first two lines; of commands that choose no gamma those alone, and the next command.
  planner::Decision decision;
  /// Without --explain at most six of its rows.
  Table table = {};
  /// Lines below the table.
  std::string note = {};
  /// What --explain adds.
  std::string more = {};
};

/// What a command says that chooses no gamma.
Spoken said(std::string action, std::string certainty = {}, std::string note = {}, std::string more = {});

nlohmann::ordered_json json_of(const planner::Decision& decision);
/// "to lower the expected loss from 7% to 1.2% in 4.2 minutes, run the server with num_speculative_tokens 7, and";
/// empty where the command needs no words.
std::string before_next(const planner::Decision& decision);
/// The first two lines; one where there is no second.
std::vector<std::string> words_of(const planner::Decision& decision);

/// The answer in at most 15 lines, with those rows and warnings that fit; or with `more`, all rows, assumptions and
/// warnings.
std::string text_of(const Spoken& spoken, std::span<const planner::Assumption> assumptions,
                    std::span<const Note> warnings, bool explain);

/// A command on separate lines, broken before options if it is long.
std::string command_lines(const std::string& command);

}  // namespace specdec::render
