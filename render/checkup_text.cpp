#include <fmt/format.h>
#include <fmt/ranges.h>
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
  return wrapped(visible(line), 2);
}

std::string text_of(const Finding& finding) {
  std::string text =
      wrapped(visible(fmt::format("{} ({}): {}", planner::name_of(finding.severity), finding.code, finding.message)),
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

/// "acceptance of the first draft below 8.3%"
std::string defect_text(const std::string& figure, double bound) {
  return fmt::format("{} {}",
                     figure == "first_draft_acceptance" ? "acceptance of the first draft below"
                                                        : "tokens per step that change by more than",
                     percent(bound));
}

/// The largest of the bounds of one figure, of those files that have any; empty if none has.
std::string widest_bound(const std::vector<planner::LookedFor>& looked_for, const std::string& figure) {
  const bool is_least = figure == "first_draft_acceptance";
  std::optional<double> widest;
  for (const planner::LookedFor& one : looked_for) {
    if (one.figure != figure || !one.bound) continue;
    if (!widest || (is_least ? *one.bound < *widest : *one.bound > *widest)) widest = one.bound;
  }
  return widest ? defect_text(figure, *widest) : "";
}

/// What would have been found, in all files with enough counts.
std::string shown_sentence(const Checkup& checkup) {
  std::vector<std::string> shown = {widest_bound(checkup.looked_for, "first_draft_acceptance"),
                                    widest_bound(checkup.looked_for, "change_of_tokens_per_step")};
  std::erase(shown, "");
  if (shown.empty()) return "";
  return fmt::format("{} would have shown; {} can raise a false alarm in {} of runs at most.",
                     capitalised(fmt::format("{}", fmt::join(shown, ", or "))),
                     counted(checkup.tests, "statistical test"), percent(planner::checkup_false_alarm_rate));
}

std::string looked_for_text(const std::vector<planner::LookedFor>& looked_for) {
  std::vector<std::string> lines;
  for (const planner::LookedFor& one : looked_for) {
    lines.push_back(fmt::format("{}: {}.", one.file,
                                one.bound ? defect_text(one.figure, *one.bound) + " would have shown"
                                          : "too few rounds to tell a broken draft"));
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string text;
  for (const std::string& line : lines) text += wrapped(visible(line), 2) + '\n';
  return text;
}

/// "1 error, 2 notes"
std::string counts_text(const Checkup& checkup) {
  std::vector<std::string> counts;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note})
    if (checkup.count(severity) > 0)
      counts.push_back(counted(checkup.count(severity), planner::name_of(severity)));
  return fmt::format("{}", fmt::join(counts, ", "));
}

Spoken without_findings(const Checkup& checkup) {
  const bool blind = std::none_of(checkup.looked_for.begin(), checkup.looked_for.end(),
                                  [](const auto& one) { return one.bound.has_value(); });
  const bool only_counts =
      std::all_of(checkup.files.begin(), checkup.files.end(), [](const auto& file) { return file.kind == "counts"; });
  if (blind && only_counts)
    return said("Nothing was found, and little could be: too few counts stand in these files.",
                "Counts of rounds, drafted and accepted tokens would let doctor test them.");
  return said("Nothing is wrong or suspicious.", shown_sentence(checkup));
}

Spoken with_findings(const Checkup& checkup) {
  const Finding& worst = checkup.findings.front();
  Spoken answer = said(capitalised(visible(worst.remedy)) + '.',
                       fmt::format("{} ({}).", capitalised(visible(worst.message)), counts_text(checkup)));
  if (checkup.findings.size() == 1) return answer;
  const auto file_of = [](const Finding& finding) {
    return finding.evidence.empty() ? "" : finding.evidence.front().file;
  };
  answer.table = make_table(checkup.findings,
                            {{"", {Align::left}, [](const Finding& f) { return std::string(planner::name_of(f.severity)); }},
                             {"finding", {Align::left}, &Finding::code},
                             {"file", {.align = Align::left, .widest = 60}, file_of}});
  return answer;
}

}  // namespace

Spoken spoken(const Checkup& checkup) {
  Spoken answer = checkup.findings.empty() ? without_findings(checkup) : with_findings(checkup);
  for (const Finding& finding : checkup.findings) answer.more += text_of(finding) + '\n';
  answer.more += looked_for_text(checkup.looked_for);
  return answer;
}

}  // namespace specdec::render
