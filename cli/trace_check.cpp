#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/text_source_tests.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/trace_input.hpp"
#include "planner/distinct_files.hpp"
#include "planner/sources/recording_files.hpp"
#include "render/text.hpp"
#include "traces/check_trace.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using traces::FileError;
using traces::TraceCheck;

/// Findings that are listed; all are counted.
constexpr std::int64_t most_listed = 1000;

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

render::Spoken checked_text(const TraceCheck& check) {
  if (check.count == 0) return render::said(fmt::format("Nothing is wrong with its {} positions.", check.positions));
  std::string first, all;
  constexpr std::int64_t most_lines = 12;
  for (const FileError& error : check.findings) {
    const std::string line = wrapped(visible(error.what()), 2) + '\n';
    const bool fits = first == all && std::count(first.begin(), first.end(), '\n') < most_lines;
    if (fits) first += line;
    all += line;
  }
  const std::string more = first == all ? "" : all;
  return render::said(fmt::format("{} wrong.", check.count == 1 ? "One thing is" : fmt::format("{} things are", check.count)),
                      {}, first, more);
}

/// Checks by which analyze warns of a text that does not fit its rows, or refuses it. Sees the recording by batches.
class TextTest {
 public:
  void add(const traces::PositionSource& source, const traces::PositionBatch& batch) {
    is_over_ = is_over_ || source.metadata().path == traces::TextSource::other;
    if (is_over_) return;
    try {
      if (!observer_) observer_.emplace(source.metadata(), estimate::ObserveOptions{});
      const estimate::Observations observed = observer_->observe(source, batch);
      is_whole_ = is_whole_ && batch.tier == traces::Tier::full;
      if (is_whole_) tests_.add(observed);
    } catch (const FileError& error) {
      is_over_ = true;
      refusal_.emplace(error);
    } catch (const estimate::RuleUndefined&) {
      is_over_ = true;
    }
  }

  /// The error for which every command refuses the recording; empty if there is none.
  const std::optional<FileError>& refusal() const { return refusal_; }

  void report_to(std::vector<Note>& warnings) const {
    const estimate::TextSourceResult result = tests_.result();
    if (!is_over_ && is_whole_ && result.suspicious()) warnings.push_back({"text_not_from_target", result.warning()});
  }

 private:
  std::optional<estimate::Observer> observer_;
  estimate::TextSourceAccumulator tests_;
  /// Nothing more can be tested, or need be.
  bool is_over_ = false;
  /// All rows so far were whole.
  bool is_whole_ = true;
  std::optional<FileError> refusal_;
};

Report run_check(const TraceInput& input, const Options& options) {
  const traces::OpenOptions how = input.options();
  for (const std::filesystem::path& file : input.files()) traces::FileHead::of(file);
  planner::require_distinct("TRACE", input.files());
  TextTest text;
  const Progress progress = progress_line("checking", options.quiet());
  TraceCheck check = traces::check_trace(input.files(), how, most_listed, [&](const auto& source, const auto& batch) {
    text.add(source, batch);
    planner::tell_of_reading(progress, source, batch);
  });
  if (check.count == 0 && text.refusal()) {
    check.findings.push_back(*text.refusal());
    check.count = 1;
  }
  Report report;
  report.json = {{"passed", check.count == 0}, {"count", check.count}, {"positions", check.positions}};
  ordered_json& findings = report.json["findings"] = ordered_json::array();
  for (const FileError& error : check.findings) findings.push_back(finding_json(error));
  report.rows_of_empty["findings"] = finding_json(FileError({}, FileError::whole_file(), "", "", ""));
  if (check.count > std::ssize(check.findings)) {
    report.warnings.push_back(
        {"findings_cut", fmt::format("only the first {} findings are listed", check.findings.size())});
  }
  append(report.warnings, check.notes);
  if (check.count == 0) text.report_to(report.warnings);
  report.spoken = checked_text(check);
  report.exit_code = check.count == 0 ? success : check_failed;
  return report;
}

}  // namespace

Command trace_check_command() {
  return {"trace check",
          "Everything that is wrong with a recording, with file and place; exit code 1 if anything is",
          {{"findings", "/findings"}},
          setup_of<TraceInput>(run_check)};
}

}  // namespace specdec::cli
