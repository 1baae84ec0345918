#include "cli/doctor.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/acceptance_conventions.hpp"
#include "cli/files.hpp"
#include "cli/usage_error.hpp"
#include "planner/checkup/checkup.hpp"
#include "render/checkup.hpp"

namespace specdec::cli {
namespace {

struct DoctorOptions {
  planner::CheckupQuestion question;
  std::optional<std::string> target, draft;
  bool hash = false;

  void declare(Options& options) {
    options.group("Files");
    options.text("--target", target, "FILE", "the target's half of a recording in two files");
    options.text("--draft", draft, "FILE", "the draft's half of it");
    options.integer("-k,--gamma,--num-speculative-tokens,--at", question.gamma, {1, estimate::largest_converted_gamma},
                    "gamma at which was counted, where the files do not say it");
    options.flag("--hash", hash, "SHA-256 also of files above 64 MB");
    options.group("Tests");
    options.number("--false-alarm-rate", question.false_alarm_rate, {.lo = 0, .hi = 0.5, .lo_open = true},
                   "share of runs over faultless files in which the statistical tests\ntogether find something");
    options.integer("--threads", question.threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
    options.footer(
        "Examples:\n"
        "  specdec doctor before.prom after.prom server.log\n"
        "  specdec doctor plain.json speculative.json recording.safetensors --format json\n"
        "Exit code 1 where an error is found. What is looked for: docs/cli.md.");
    options.arguments("SOURCE", question.files,
                      "counters, logs, benchmark results, answers, recordings\nor engines' configurations",
                      Options::Least::none);
  }
};

Report run(const DoctorOptions& options) {
  planner::CheckupQuestion question = options.question;
  if (options.target.has_value() != options.draft.has_value()) {
    throw UsageError("--target and --draft are the two halves of a recording: give both");
  }
  if (options.target) {
    question.pair = planner::RecordingFiles{};
    question.pair->how.target = *options.target;
    question.pair->how.draft = *options.draft;
  }
  const planner::Checkup checkup = planner::check_up(question);
  Report report;
  report.json = render::json_of(checkup);
  report.text = render::text_of(checkup);
  report.rows_of_empty = render::rows_of_empty_checkup();
  for (const std::string& file : question.files) report.files.push_back(file_facts("SOURCE", file, options.hash));
  if (question.pair) {
    report.files.push_back(file_facts("--target", *options.target, options.hash));
    report.files.push_back(file_facts("--draft", *options.draft, options.hash));
  }
  report.exit_code = checkup.count(planner::Severity::error) > 0 ? check_failed : success;
  return report;
}

}  // namespace

Command doctor_command() {
  return {
      "doctor",
      "What is wrong or suspicious with counters, logs, benchmarks and recordings; exit code 1 if anything is broken",
      {{"findings", "/findings"}, {"evidence", "/findings/*/evidence", {"code", "severity"}}},
      [](Options& options) {
        const auto chosen = std::make_shared<DoctorOptions>();
        chosen->declare(options);
        return std::function<Report()>([chosen] { return run(*chosen); });
      }};
}

}  // namespace specdec::cli
