#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "render/difference.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using estimate::Difference;
using estimate::GroupDifference;
using estimate::PositionDifference;
using estimate::RunDifference;
using planner::ComparedRun;
using planner::RunsDifference;

std::string compared_run_text(std::string_view name, const ComparedRun& run, std::int64_t units, double tokens) {
  return wrapped(fmt::format("{}: {}: {}{}{}, {} tokens per step", name, without_control_characters(run.file),
                             counted(units, run.unit), run.gamma ? fmt::format(" at gamma {}", *run.gamma) : "",
                             run.rule ? fmt::format(", {}", traces::name_of(*run.rule)) : "", fixed(tokens)),
                 2) +
         '\n';
}

std::string p_value_text(const Difference& difference) {
  constexpr double least_shown = 1e-12;
  if (!difference.p_value) return "-";
  return *difference.p_value < least_shown ? "<1e-12" : brief(*difference.p_value, 2);
}

/// "0.312  0.104 to 0.520  0.0034", in columns.
std::string columns_of(const Difference& difference) {
  const std::string interval =
      difference.ci95 ? fmt::format("{} to {}", fixed(difference.ci95->lo), fixed(difference.ci95->hi)) : "-";
  return fmt::format("{:>10}  {:>18}  {:>8}", fixed(difference.value), interval, p_value_text(difference));
}

std::string difference_heading(std::string_view first, std::string_view before) {
  return fmt::format("{:<24}{}{:>10}  {:>18}  {:>8}\n", first, before, "B - A", "95%", "p");
}

std::string difference_row(const std::string& name, const std::string& before, const Difference& difference) {
  return fmt::format("{:<24}{}{}\n", without_control_characters(name), before, columns_of(difference));
}

std::string position_differences_text(const RunDifference& found) {
  if (found.positions.empty()) return "";
  std::string text = "\nBy position, shares of steps whose first drafts are accepted:\n\n" +
                     difference_heading("drafts", fmt::format("{:>8}{:>8}", "A", "B"));
  for (const PositionDifference& one : found.positions) {
    text += difference_row(fmt::format("{}", one.position), fmt::format("{:>8}{:>8}", fixed(one.a), fixed(one.b)),
                           one.difference);
  }
  return text;
}

std::string tokens_cell(const std::optional<double>& tokens) { return tokens ? fixed(*tokens) : "-"; }

std::string group_differences_text(const RunDifference& found) {
  if (!found.mix) return "";
  std::string text =
      "\nBy prompt mix, tokens per step:\n\n" + difference_heading("part", "") +
      difference_row("shares of groups", "", *found.mix) + difference_row("acceptance in groups", "", *found.within) +
      '\n' +
      difference_heading("group", fmt::format("{:>8}{:>8}{:>9}{:>9}{:>8}", "A", "B", "share A", "share B", "mix"));
  for (const GroupDifference& one : found.groups) {
    text +=
        difference_row(one.group.empty() ? "(none)" : one.group,
                       fmt::format("{:>8}{:>8}{:>9}{:>9}{:>8}", tokens_cell(one.tokens_a), tokens_cell(one.tokens_b),
                                   percent(one.share_a), percent(one.share_b), fixed(one.mix)),
                       one.acceptance);
  }
  return text;
}

std::string rule_difference_text(const RunDifference& found) {
  if (!found.rule) return "";
  const Difference rest = {found.tokens.value - found.rule->value, {}, {}};
  return "\nBy acceptance rule, tokens per step:\n\n" + difference_heading("part", "") +
         difference_row("rule", "", *found.rule) + difference_row("drafts and texts", "", rest);
}

std::string time_difference_text(const RunDifference& found) {
  if (!found.time) return "";
  return fmt::format("\nBy time, {} ms a token of A and {} ms of B, as logarithms of ratios:\n\n{}{}{}{}",
                     brief(1e3 * found.time->seconds_per_token_a), brief(1e3 * found.time->seconds_per_token_b),
                     difference_heading("part", ""), difference_row("time per token", "", found.time->log_per_token),
                     difference_row("cost: time per step", "", found.time->log_round),
                     difference_row("tokens per step", "", found.time->log_tokens));
}

std::string power_text(const RunDifference& found) {
  if (!found.detectable) return "";
  const auto clusters = static_cast<double>(std::max(found.clusters_a, found.clusters_b));
  std::string text =
      fmt::format("As many as these find a difference of {} in four runs of five", fixed(*found.detectable));
  if (found.clusters_to_tell) {
    text += *found.clusters_to_tell <= clusters
                ? fmt::format("; {} of each would find this one", brief(*found.clusters_to_tell))
                : fmt::format("; this one takes {} of each, {} more", brief(*found.clusters_to_tell),
                              brief(*found.clusters_to_tell - clusters));
  }
  return wrapped(text + ".") + '\n';
}

std::string difference_verdict_text(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  const Difference& tokens = found.tokens;
  const std::string by = fmt::format("{} tokens per step", fixed(std::abs(tokens.value)));
  const std::string pairs = found.paired > 0 ? fmt::format("; {} prompts are paired", found.paired) : "";
  if (!tokens.ci95)
    return fmt::format("B - A is {} tokens per step; no interval.{}", fixed(tokens.value),
                       answer.undecided.empty() ? "" : fmt::format(" It tells nothing: {}.", answer.undecided));
  const std::string interval = fmt::format("95% of B - A: {} to {}, p {}{}", fixed(tokens.ci95->lo),
                                           fixed(tokens.ci95->hi), p_value_text(tokens), pairs);
  if (!answer.tells()) {
    return fmt::format("It cannot be told whether A or B accepts more{}{} ({}).", answer.undecided.empty() ? "" : ": ",
                       answer.undecided, interval);
  }
  return fmt::format("B puts out {} {} than A ({}).", by, tokens.value > 0 ? "more" : "less", interval);
}

}  // namespace

std::string text_of(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  return wrapped(difference_verdict_text(answer)) + '\n' + power_text(found) + '\n' +
         compared_run_text("A", answer.a, found.units_a, found.tokens_a) +
         compared_run_text("B", answer.b, found.units_b, found.tokens_b) + position_differences_text(found) +
         group_differences_text(found) + rule_difference_text(found) + time_difference_text(found);
}

}  // namespace specdec::render
