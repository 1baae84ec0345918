#include <fmt/format.h>
#include <memory>

#include "cli/text.hpp"
#include "cli/trace_commands.hpp"
#include "cli/trace_input.hpp"
#include "traces/check_trace.hpp"

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;
using traces::FileError;
using traces::TraceCheck;

struct CheckOptions {
  TraceInput input;
  std::int64_t max_findings = 1000;
};

ordered_json finding_json(const FileError& error) {
  const FileError::Location location = error.location();
  const auto number_if = [&](FileError::Location::Kind kind) {
    return location.kind == kind ? ordered_json(location.number) : ordered_json();
  };
  return {{"file", error.path().string()},
          {"line", number_if(FileError::Location::Kind::line)},
          {"byte", number_if(FileError::Location::Kind::byte)},
          {"field", error.field()},
          {"found", error.found()},
          {"expected", error.expected()}};
}

std::string text_of(const TraceCheck& check) {
  if (check.count == 0) return fmt::format("Nothing is wrong with its {} positions.\n", check.positions);
  std::string text = fmt::format("{} {} wrong.\n", check.count, check.count == 1 ? "thing is" : "things are");
  for (const FileError& error : check.findings) {
    text += wrapped(without_control_characters(error.what()), 2) + '\n';
  }
  const std::int64_t left_out = check.count - std::ssize(check.findings);
  if (left_out > 0) text += fmt::format("... and {} more.\n", left_out);
  return text;
}

Report run(const CheckOptions& options) {
  const traces::OpenOptions how = options.input.options();
  for (const std::filesystem::path& file : options.input.files()) traces::FileHead::of(file);
  const TraceCheck check = traces::check_trace(options.input.files(), how, options.max_findings);
  Report report;
  report.json = {{"passed", check.count == 0}, {"count", check.count}, {"positions", check.positions}};
  ordered_json& findings = report.json["findings"] = ordered_json::array();
  for (const FileError& error : check.findings) findings.push_back(finding_json(error));
  if (check.count > std::ssize(check.findings)) {
    report.warnings.push_back(
        {"findings_cut", fmt::format("only the first {} findings are listed", check.findings.size())});
  }
  add_notes(check.notes, report);
  report.text = text_of(check);
  report.exit_code = check.count == 0 ? success : check_failed;
  return report;
}

}  // namespace

Command trace_check_command() {
  return {"trace check",
          "Everything that is wrong with a recording, with file and place; exit code 1 if anything is",
          {{"findings", "/findings"}},
          [](Options& options) {
            const auto chosen = std::make_shared<CheckOptions>();
            options.group("Check");
            options.integer("--max-findings", chosen->max_findings, {.lo = 1, .hi = 1'000'000},
                            "findings to list; all are counted");
            chosen->input.declare(options);
            return std::function<Report()>([chosen] { return run(*chosen); });
          }};
}

}  // namespace specdec::cli
