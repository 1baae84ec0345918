#include "render/spoken.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/planning/bench_plan.hpp"
#include "planner/acceptance.hpp"
#include "planner/difference.hpp"
#include "planner/lookup_drafts.hpp"
#include "render/json_values.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;

/// As JSON, but without digits that arithmetic adds to typed ones.
std::string assumed_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const ordered_json& item : value) items.push_back(assumed_text(item));
    return fmt::format("[{}]", fmt::join(items, ","));
  }
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  // Rates near 1 differ in later digits.
  const int digits = 0.999 < number && number < 1 ? 15 : 6;
  return ordered_json(std::stod(fmt::format("{:.{}g}", number, digits))).dump();
}

/// "Assumptions: ..." and a paragraph for each warning.
std::string closing_text(std::span<const planner::Assumption> assumptions, const std::vector<std::string>& warnings) {
  std::vector<std::string> assumed;
  for (const planner::Assumption& a : assumptions)
    assumed.push_back(fmt::format("{} {} ({})", a.name, assumed_text(a.value), a.source));
  std::string text;
  if (!assumed.empty()) text = wrapped(fmt::format("Assumptions: {}.", fmt::join(assumed, ", ")), 2) + '\n';
  for (const std::string& warning : warnings) text += warning;
  return text;
}

/// Text shows it before other warnings.
bool doubts_figures(const Note& note) {
  constexpr std::array doubts = {planner::later_scrape,         planner::lengths_contradict,
                                 estimate::figures_contradict,  estimate::draft_never_accepted,
                                 estimate::acceptance_changes,  planner::hit_rate_unknown,
                                 planner::steps_without_drafts, planning::runs_disagree,
                                 cost::rounds_fall_with_gamma,  cost::no_plain_runs};
  return std::find(doubts.begin(), doubts.end(), note.code) != doubts.end();
}

std::int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// So many of the warnings, and how many more there are.
std::string first_of(const std::vector<std::string>& warnings, std::size_t shown) {
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += warnings[i];
  if (shown == warnings.size()) return text;
  const std::int64_t others = std::ssize(warnings) - static_cast<std::int64_t>(shown);
  const std::string rest = fmt::format("{}: --explain\n", counted(others, shown == 0 ? "warning" : "more warning"));
  return text + rest;
}

/// `below`, with a blank line before it if there is something above.
std::string after_blank_line(const std::string& above, const std::string& below) {
  return above.empty() || below.empty() ? below : '\n' + below;
}

}  // namespace

Spoken said(std::string action, std::string certainty, std::string note, std::string more) {
  Spoken spoken;
  spoken.decision.action = std::move(action);
  spoken.decision.certainty = std::move(certainty);
  spoken.note = std::move(note);
  spoken.more = std::move(more);
  return spoken;
}

ordered_json json_of(const planner::Decision& decision) {
  ordered_json schedule = ordered_json::array();
  for (const planning::PlannedStretch& one : decision.schedule) {
    schedule.push_back({{"from", one.batch_low},
                        {"to", one.batch_high},
                        {"gamma", one.gamma},
                        {"speedup", one.speedup},
                        {"share", one.share}});
  }
  return {{"verdict", decision.verdict ? ordered_json(worlds::name_of(*decision.verdict)) : ordered_json()},
          {"gamma", or_null(decision.gamma)},
          {"schedule", std::move(schedule)},
          {"speedup",
           {{"value", number_or_null(decision.speedup.value)},
            {"ci95", pair_of(decision.speedup.ci95)},
            {"bounds", pair_of(decision.speedup.bounds)},
            {"share", number_or_null(decision.speedup.share)}}},
          {"over", decision.over ? ordered_json{{"gamma", decision.over->gamma},
                                                {"batch", decision.over->batch},
                                                {"share", decision.over->share}}
                                 : ordered_json()},
          {"text", {decision.action, decision.certainty}},
          {"server", decision.server.empty() ? ordered_json() : ordered_json(decision.server)},
          {"next", decision.next.empty() ? ordered_json() : ordered_json(decision.next)}};
}

std::string before_next(const planner::Decision& decision) {
  if (decision.server.empty()) return decision.purpose;
  return fmt::format("{}{}run the server {}, and", decision.purpose, decision.purpose.empty() ? "" : ", ",
                     decision.server);
}

std::vector<std::string> words_of(const planner::Decision& decision) {
  std::vector<std::string> words = {decision.action, decision.certainty};
  std::erase(words, "");
  return words;
}

std::string text_of(const Spoken& spoken, std::span<const planner::Assumption> assumptions,
                    std::span<const Note> warnings, bool explain) {
  std::string text;
  for (const std::string& line : words_of(spoken.decision)) text += wrapped(line) + '\n';
  std::string next;
  if (const std::string& command = spoken.decision.next; !command.empty())
    next = '\n' + (before_next(spoken.decision).empty()
                       ? wrapped("Next: " + command, 2) + '\n'
                       : wrapped("Next: " + before_next(spoken.decision)) + '\n' + command_lines(command));
  std::vector<Note> in_order(warnings.begin(), warnings.end());
  std::stable_partition(in_order.begin(), in_order.end(), doubts_figures);
  std::vector<std::string> told;
  for (const Note& warning : in_order) {
    const std::string code = explain ? fmt::format(" ({})", warning.code) : "";
    if (!warning.explains_null) told.push_back(wrapped(fmt::format("Warning{}: {}.", code, warning.message), 2) + '\n');
  }
  if (explain) {
    if (!spoken.table.rows.empty()) text += after_blank_line(text, text_of(spoken.table));
    text += spoken.note;
    return text + after_blank_line(text, spoken.more) + after_blank_line(text, closing_text(assumptions, told)) + next;
  }
  // A note, such as the configuration that was asked for, stands beside all this.
  constexpr std::int64_t most_lines = 15, heading_lines = 2;
  constexpr std::size_t most_rows = 6, least_rows = 3, most_warnings = 2;
  const std::size_t rows = spoken.table.rows.size();
  const auto rows_beside = [&](std::size_t warnings_shown) {
    const std::string below = after_blank_line(text, first_of(told, warnings_shown));
    const std::int64_t left = most_lines - lines_of(text + below + next) - (rows > 0 ? heading_lines : 0);
    return std::min(std::min(rows, most_rows), static_cast<std::size_t>(std::max<std::int64_t>(left, 0)));
  };
  // The second warning makes way for rows, and the first for as many as decide, unless it doubts them.
  std::size_t shown = std::min(told.size(), most_warnings);
  if (shown == 2 && rows_beside(2) < std::min(rows, most_rows)) shown = 1;
  const bool is_doubted = !in_order.empty() && doubts_figures(in_order.front());
  if (shown == 1 && !is_doubted && rows_beside(1) < std::min(rows, least_rows)) shown = 0;
  if (const std::size_t fitting = std::max(rows_beside(shown), is_doubted ? 0 : std::min(rows, least_rows));
      fitting > 0)
    text += after_blank_line(text, text_of(shortened(spoken.table, fitting)));
  return text + after_blank_line(text, first_of(told, shown)) + spoken.note + next;
}

std::string command_lines(const std::string& command) {
  constexpr std::size_t indent = 2;
  if (indent + command.size() <= text_width()) return std::string(indent, ' ') + command + '\n';
  std::string text, line = std::string(indent, ' ');
  std::size_t at = 0;
  while (at < command.size()) {
    std::size_t next = command.find(" --", at + 1);
    if (next == std::string::npos) next = command.size();
    const std::string part = command.substr(at, next - at);
    if (line.size() + part.size() + 2 > text_width() && line.size() > indent) {
      text += line + " \\\n";
      line = std::string(indent + 1, ' ');
    }
    line += part;
    at = next;
  }
  return text + line + '\n';
}

}  // namespace specdec::render
