#include <fmt/format.h>
#include <cmath>
#include <string>
#include <vector>

#include "render/difference.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using estimate::Difference;
using estimate::RunDifference;
using planner::RunsDifference;

/// A row of any of the tables; cells that a table lacks are empty.
struct Part {
  std::string name;
  Difference difference;
  std::vector<std::string> before = {};
};

std::string p_value_text(const Difference& difference) {
  constexpr double least_shown = 1e-12;
  if (!difference.p_value) return "-";
  return *difference.p_value < least_shown ? "<1e-12" : brief(*difference.p_value, 2);
}

/// @param before  headings between the name and the difference
Table table_of(const std::string& name, const std::vector<std::string>& before, const std::vector<Part>& parts) {
  std::vector<Column<Part>> columns = {{name, {.align = Align::left}, &Part::name}};
  for (std::size_t i = 0; i < before.size(); ++i)
    columns.emplace_back(before[i], [i](const Part& part) { return part.before[i]; });
  columns.emplace_back("B - A", [](const Part& part) { return fixed(part.difference.value); });
  columns.emplace_back("95%", [](const Part& part) {
    const auto& ci95 = part.difference.ci95;
    return ci95 ? fmt::format("{:.3f} to {:.3f}", ci95->lo, ci95->hi) : "-";
  });
  columns.emplace_back("p", [](const Part& part) { return p_value_text(part.difference); });
  return make_table(parts, columns);
}

Table positions_table(const RunDifference& found) {
  const auto cell = [](const std::optional<double>& value) { return value ? fixed(*value) : "-"; };
  std::vector<Part> parts;
  for (const estimate::PositionDifference& one : found.positions)
    parts.push_back({fmt::format("{}", one.position), one.difference, {cell(one.a), cell(one.b)}});
  return table_of("drafts accepted", {"A", "B"}, parts);
}

std::string groups_text(const RunDifference& found) {
  if (!found.mix) return "";
  std::vector<Part> groups;
  for (const estimate::GroupDifference& one : found.groups) {
    groups.push_back({one.group.empty() ? "(none)" : one.group,
                      one.acceptance,
                      {fixed(one.tokens_a), fixed(one.tokens_b), percent(one.share_a), percent(one.share_b),
                       fixed(one.mix)}});
  }
  return "\nBy prompt mix, tokens per step:\n\n" +
         text_of(table_of("part", {}, {{"shares of groups", *found.mix}, {"acceptance in groups", *found.within}})) +
         '\n' + text_of(table_of("group", {"A", "B", "share A", "share B", "mix"}, groups));
}

std::string rule_text(const RunDifference& found) {
  if (!found.rule) return "";
  const Difference rest = {found.tokens.value - found.rule->value, {}, {}};
  return "\nBy acceptance rule, tokens per step:\n\n" +
         text_of(table_of("part", {}, {{"rule", *found.rule}, {"drafts and texts", rest}}));
}

std::string time_text(const RunDifference& found) {
  if (!found.time) return "";
  return fmt::format("\nBy time, {} ms a token of A and {} ms of B, as logarithms of ratios:\n\n{}",
                     brief(1e3 * found.time->seconds_per_token_a), brief(1e3 * found.time->seconds_per_token_b),
                     text_of(table_of("part", {},
                                      {{"time per token", found.time->log_per_token},
                                       {"cost: time per step", found.time->log_round},
                                       {"tokens per step", found.time->log_tokens}})));
}

std::string run_text(std::string_view name, const planner::ComparedRun& run, std::int64_t units, double tokens) {
  return wrapped(fmt::format("{}: {}: {}{}{}, {} tokens per step", name, visible(run.file), counted(units, run.unit),
                             run.gamma ? fmt::format(" at gamma {}", *run.gamma) : "",
                             run.rule ? fmt::format(", {}", traces::name_of(*run.rule)) : "", fixed(tokens)),
                 2) +
         '\n';
}

const std::string& name_of(const planner::ComparedFiles& run) { return run.draft_array ? *run.draft_array : run.file; }

/// "A accepts more: 2.83 tokens per step, B 2.2; A - B is 0.627 (0.593 to 0.661)."
std::string tokens_text(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  const Difference& tokens = found.tokens;
  if (answer.tells()) {
    const std::optional<estimate::Interval> range =
        tokens.value > 0 ? *tokens.ci95 : estimate::Interval{-tokens.ci95->hi, -tokens.ci95->lo};
    const bool is_b = tokens.value > 0;
    const std::pair most = {is_b ? "B" : "A", is_b ? found.tokens_b : found.tokens_a};
    const std::pair least = {is_b ? "A" : "B", is_b ? found.tokens_a : found.tokens_b};
    return fmt::format("{} accepts more: {} tokens per step, {} {}; {} - {} is {}.", most.first, brief(most.second, 3),
                       least.first, brief(least.second, 3), most.first, least.first,
                       with_range(std::abs(tokens.value), range));
  }
  return fmt::format("{}B {} tokens per step, A {}; B - A is {}.", tokens.ci95 ? "Not told apart: " : "",
                     brief(found.tokens_b, 3), brief(found.tokens_a, 3), with_range(tokens.value, tokens.ci95));
}

/// "A is faster: a token of B takes 1.15 times as long (1.1 to 1.2)."
std::string time_action(const estimate::TimeDifference& time) {
  const Difference& log = time.log_per_token;
  const bool told = !log.ci95 || log.ci95->lo > 0 || log.ci95->hi < 0;
  const char* const better = log.ci95 ? "is faster" : "took less time";
  const std::optional<estimate::Interval> range =
      log.ci95 ? std::optional(estimate::Interval{std::exp(log.ci95->lo), std::exp(log.ci95->hi)}) : std::nullopt;
  return fmt::format(
      "{}: a token of B takes {} times as long.",
      log.value == 0 || !told ? "Not told apart" : fmt::format("{} {}", log.value > 0 ? "A" : "B", better),
      with_range(std::exp(log.value), range));
}

/// Which run is better, and by how much.
std::string action_of(const RunsDifference& answer) {
  return answer.difference.time ? time_action(*answer.difference.time) : tokens_text(answer);
}

/// How sure that is, what else differs, and what would tell more.
std::string certainty_of(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  if (!answer.undecided.empty()) return fmt::format("This decides nothing: {}.", answer.undecided);
  std::string text = found.time ? tokens_text(answer) + ' ' : "";
  if (!found.tokens.ci95) return text + "Nothing says how sure this is: give requests or windows of time, not totals.";
  text += fmt::format("A is {}, B {}; p {}", name_of(answer.question.a), name_of(answer.question.b),
                      p_value_text(found.tokens));
  if (found.paired > 0) text += fmt::format(", {}", counted(found.paired, "pair"));
  if (found.detectable && !answer.tells()) {
    text += fmt::format(". As many as these find a difference of {} in four runs of five", brief(*found.detectable, 2));
    const auto clusters = static_cast<double>(std::max(found.clusters_a, found.clusters_b));
    if (found.clusters_to_tell && *found.clusters_to_tell > clusters)
      text += fmt::format("; this one takes {} of each", brief(*found.clusters_to_tell, 2));
  }
  return text + '.';
}

}  // namespace

Spoken spoken(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  Spoken said_of = said(action_of(answer), certainty_of(answer), {},
                        run_text("A", answer.a, found.units_a, found.tokens_a) +
                            run_text("B", answer.b, found.units_b, found.tokens_b) + groups_text(found) +
                            rule_text(found) + time_text(found));
  if (!found.positions.empty()) said_of.table = positions_table(found);
  return said_of;
}

}  // namespace specdec::render
