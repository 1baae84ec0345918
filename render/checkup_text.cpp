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

}  // namespace

std::string text_of(const Checkup& checkup) {
  std::string text;
  for (const Finding& finding : checkup.findings) text += text_of(finding) + '\n';
  text += checkup.findings.empty() ? "Nothing is wrong or suspicious.\n"
                                   : fmt::format("{}, {}, {}.\n", counted(checkup.count(Severity::error), "error"),
                                                 counted(checkup.count(Severity::warning), "warning"),
                                                 counted(checkup.count(Severity::note), "note"));
  if (checkup.tests == 0) return text;
  return text + fmt::format("{}; together they raise a false alarm in {} of runs at most.\n",
                            counted(checkup.tests, "statistical test"), percent(planner::checkup_false_alarm_rate));
}

}  // namespace specdec::render
