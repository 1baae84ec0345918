#include <fmt/format.h>
#include <algorithm>

#include "render/checkup.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Checkup;
using planner::Evidence;
using planner::Finding;
using planner::Severity;

std::string line_of(const Evidence& evidence) {
  const std::string place = evidence.line > 0 ? fmt::format("{}:{}", evidence.file, evidence.line) : evidence.file;
  const std::string value = evidence.value ? brief(*evidence.value) : evidence.text;
  const std::string line = fmt::format("- {}{}{} = {}", place, place.empty() ? "" : ": ", evidence.name, value);
  return wrapped(without_control_characters(line), 2);
}

std::string text_of(const Finding& finding) {
  std::string text = wrapped(without_control_characters(fmt::format("{} ({}): {}", planner::name_of(finding.severity),
                                                                    finding.code, finding.message)),
                             2) +
                     '\n';
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.value) text += line_of(evidence) + '\n';
  }
  if (finding.adjusted_p_value) {
    constexpr double shown = 1e-12;
    const double p = *finding.adjusted_p_value;
    text += fmt::format("- by chance with probability {} at most, all tests counted\n", brief(std::max(p, shown), 2));
  }
  return text + wrapped(fmt::format("- To do: {}.", finding.remedy), 2) + '\n';
}

/// What would have shown, a line for each that differs; of more than most_shown the number.
std::vector<std::string> shown_lines(const std::vector<planner::LookedFor>& looked_for) {
  constexpr std::size_t most_shown = 4;
  std::vector<std::string> lines;
  for (const planner::LookedFor& one : looked_for) {
    const bool first = one.figure == "first_draft_acceptance";
    if (!one.bound) {
      lines.push_back(fmt::format("{}: too few rounds to tell a broken draft.", one.file));
    } else {
      lines.push_back(fmt::format("{}: {} {} would have shown.", one.file,
                                  first ? "acceptance of the first draft below"
                                        : "tokens per step that change over it by more than",
                                  percent(*one.bound)));
    }
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  if (lines.size() > most_shown) {
    const std::size_t more = lines.size() - most_shown;
    lines.resize(most_shown);
    lines.push_back(fmt::format("And {} more (--format json).", more));
  }
  return lines;
}

bool only_counts(const Checkup& checkup) {
  return std::all_of(checkup.files.begin(), checkup.files.end(), [](const auto& file) { return file.kind == "counts"; });
}

}  // namespace

std::string text_of(const Checkup& checkup) {
  std::string text;
  for (const Finding& finding : checkup.findings) text += text_of(finding) + '\n';
  const std::vector<std::string> shown = shown_lines(checkup.looked_for);
  const bool blind = std::none_of(checkup.looked_for.begin(), checkup.looked_for.end(),
                                  [](const auto& one) { return one.bound.has_value(); });
  if (!checkup.findings.empty()) {
    text += fmt::format("{}, {}, {}.\n", counted(checkup.count(Severity::error), "error"),
                        counted(checkup.count(Severity::warning), "warning"),
                        counted(checkup.count(Severity::note), "note"));
  } else if (blind && only_counts(checkup)) {
    text += "Nothing was found, and little could be: too few counts stand in these files.\n";
  } else {
    text += "Nothing is wrong or suspicious.\n";
  }
  for (const std::string& line : shown) text += wrapped(without_control_characters(line), 2) + '\n';
  if (checkup.tests == 0) return text;
  return text + fmt::format("{}; together they raise a false alarm in {} of runs at most.\n",
                            counted(checkup.tests, "statistical test"), percent(planner::checkup_false_alarm_rate));
}

}  // namespace specdec::render
