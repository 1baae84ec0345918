#include "cli/commands.hpp"

#include <optional>
#include <string>
#include <vector>

#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/checkup/checkup.hpp"
#include "render/checkup.hpp"

namespace specdec::cli {
namespace {

struct DoctorOptions {
  planner::CheckupQuestion question;
  std::optional<std::string> target, draft;
  std::vector<std::string> draft_cost;
  std::optional<std::string> hardware, model, draft_model;
  std::optional<std::int64_t> tensor_parallel;

  void declare(Options& options) {
    options.group("Files");
    options.text("--target", target, "FILE", "the target's half of a recording in two files");
    options.text("--draft", draft, "FILE", "the draft's half of it");
    options.integer("-k,--gamma,--num-speculative-tokens,--at", question.gamma, {1, largest_counted_gamma},
                    "gamma at which was counted, where the files do not say it");
    declare_draft_kind(options, question.draft_kind, "how drafts are made, where the files do not say it");
    options.group("The draft against its roofline");
    options.texts("--draft-cost", draft_cost, "FILE",
                  "times of the draft: as for plan, or llama.cpp's log with\nstatistics of its drafts");
    options.text("--hardware,--gpu", hardware, "NAME|FILE", "what both models run on");
    options.integer("--tensor-parallel-size,--tp", tensor_parallel, {1, 1024},
                    "accelerators that share the target [1]");
    options.text("--model", model, "NAME|FILE", "the target");
    options.text("--draft-model", draft_model, "NAME|FILE", "the draft");
    options.group("Run");
    options.integer("--threads", question.threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
    options.footer(
        "Examples:\n"
        "  specdec doctor before.prom after.prom server.log\n"
        "  specdec doctor plain.json speculative.json recording.safetensors --format json\n"
        "Exit code 1 where an error is found. Its checks: docs/reference/formats.md.");
    options.arguments("SOURCE", question.files,
                      "counters, logs, benchmark results, answers, recordings\nor engines' configurations",
                      Options::Least::none);
  }
};

std::optional<planner::DraftTimes> draft_times(const DoctorOptions& o) {
  if (o.draft_cost.empty()) {
    refuse_given({{"--hardware", o.hardware.has_value()},
                  {"--tensor-parallel-size", o.tensor_parallel.has_value()},
                  {"--model", o.model.has_value()},
                  {"--draft-model", o.draft_model.has_value()}},
                 "needs --draft-cost beside it: the times that are held against the roofline");
    return std::nullopt;
  }
  if (!o.hardware || !o.model)
    throw UsageError("--draft-cost is given, but needs --hardware and --model beside it: the roofline of the draft");
  planner::DraftTimes times{o.draft_cost, *o.hardware, *o.model, {}};
  times.options.draft.model = o.draft_model;
  times.options.draft.kind = o.question.draft_kind;
  times.options.tensor_parallel = o.tensor_parallel;
  return times;
}

Report run(const DoctorOptions& options, const Options&) {
  planner::CheckupQuestion question = options.question;
  if (options.target.has_value() != options.draft.has_value()) {
    throw UsageError("--target and --draft are the two halves of a recording: give both");
  }
  if (options.target) {
    question.pair = planner::RecordingFiles{};
    question.pair->how.target = *options.target;
    question.pair->how.draft = *options.draft;
  }
  question.draft_times = draft_times(options);
  const planner::Checkup checkup = planner::check_up(question);
  Report report;
  report.json = render::json_of(checkup);
  report.spoken = render::spoken(checkup);
  report.rows_of_empty = render::rows_of_empty_checkup();
  for (const std::string& file : question.files) report.files.push_back(file_facts("SOURCE", file));
  for (const std::string& file : options.draft_cost) report.files.push_back(file_facts("--draft-cost", file));
  if (question.pair) {
    report.files.push_back(file_facts("--target", *options.target));
    report.files.push_back(file_facts("--draft", *options.draft));
  }
  report.exit_code = checkup.count(planner::Severity::error) > 0 ? check_failed : success;
  return report;
}

}  // namespace

Command doctor_command() {
  return {"doctor",
          "Errors and doubtful figures in counters, logs, benchmarks and recordings; exit code 1 if anything is broken",
          {{"findings", "/findings"}, {"evidence", "/findings/*/evidence", {"code", "severity"}}},
          setup_of<DoctorOptions>(run)};
}

}  // namespace specdec::cli
