#include <utility>

#include "render/checkup.hpp"
#include "render/json_values.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using planner::Evidence;
using planner::Finding;
using planner::Severity;

ordered_json evidence_json(const Evidence& evidence) {
  return {{"file", evidence.file},
          {"line", evidence.line > 0 ? ordered_json(evidence.line) : ordered_json()},
          {"name", evidence.name},
          {"value", number_or_null(evidence.value)},
          {"text", evidence.text.empty() ? ordered_json() : ordered_json(evidence.text)}};
}

ordered_json finding_json(const Finding& finding) {
  ordered_json json = {{"code", finding.code},
                       {"severity", planner::name_of(finding.severity)},
                       {"message", finding.message},
                       {"remedy", finding.remedy},
                       {"adjusted_p_value", number_or_null(finding.adjusted_p_value)},
                       {"evidence", ordered_json::array()}};
  for (const Evidence& evidence : finding.evidence) json["evidence"].push_back(evidence_json(evidence));
  return json;
}

}  // namespace

ordered_json json_of(const planner::Checkup& checkup) {
  ordered_json json = {{"passed", checkup.count(Severity::error) == 0},
                       {"errors", checkup.count(Severity::error)},
                       {"warnings_found", checkup.count(Severity::warning)},
                       {"notes", checkup.count(Severity::note)},
                       {"tests", checkup.tests},
                       {"false_alarm_rate", planner::checkup_false_alarm_rate},
                       {"looked_for", ordered_json::array()},
                       {"files", ordered_json::array()},
                       {"findings", ordered_json::array()}};
  for (const planner::LookedFor& one : checkup.looked_for) {
    json["looked_for"].push_back({{"file", one.file}, {"figure", one.figure}, {"bound", number_or_null(one.bound)}});
  }
  for (const planner::CheckedFile& file : checkup.files) {
    json["files"].push_back({{"file", file.file}, {"kind", file.kind}});
  }
  for (const Finding& finding : checkup.findings) json["findings"].push_back(finding_json(finding));
  return json;
}

std::map<std::string, ordered_json, std::less<>> rows_of_empty_checkup() {
  ordered_json finding = finding_json({});
  finding.erase("evidence");
  ordered_json evidence = {{"code", nullptr}, {"severity", nullptr}};
  evidence.update(evidence_json({}));
  return {{"findings", std::move(finding)}, {"evidence", std::move(evidence)}};
}

}  // namespace specdec::render
