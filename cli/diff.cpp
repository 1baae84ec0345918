#include "cli/commands.hpp"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "analysis/theory/streaming_replay.hpp"
#include "cli/files.hpp"
#include "cli/progress.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/difference.hpp"
#include "planner/traffic_mix.hpp"
#include "render/difference.hpp"

namespace specdec::cli {
namespace {

struct DiffOptions {
  planner::DifferenceQuestion question;
  std::vector<std::string> runs;
  std::optional<std::string> draft_array, by;

  void declare(Options& options) {
    options.group("Runs");
    options.integer("-k,--gamma,--num-speculative-tokens,--at", question.gamma, {1, theory::largest_replayed_gamma},
                    "drafted tokens per step: of recordings, and of counts that\ndo not say it");
    options.text("--draft-array", draft_array, "NAME[,NAME]",
                 "the draft of recordings that hold several; two names: of the\nfirst run and of the second");
    options.text("--by", by, "LABEL[:B1,B2,...]", "the label of the prompt mix [category; of recordings task]");
    options.flag("--unpaired", question.unpaired, "take no two requests or texts for those of one prompt");
    options.footer(
        "Examples:\n"
        "  specdec diff before.jsonl after.jsonl\n"
        "  specdec diff a.safetensors b.safetensors --gamma 4");
    options.arguments("RUN", runs, "two files: counts in any format of docs/reference/formats.md, or\nrecordings",
                      Options::Least::none);
  }
};

/// The drafts of the two runs.
void take_drafts(const DiffOptions& options, planner::DifferenceQuestion& question) {
  if (!options.draft_array) return;
  const auto names = render::split(*options.draft_array, ',');
  if (names.size() > 2) refuse("--draft-array", *options.draft_array, "one name, or two separated by a comma");
  question.a.draft_array = std::string(names.front());
  question.b.draft_array = std::string(names.back());
}

Report run(const DiffOptions& options, const Options& given) {
  if (options.runs.size() != 2) {
    throw UsageError(fmt::format("RUN is given {} times, but must be two files", options.runs.size()));
  }
  planner::DifferenceQuestion question = options.question;
  question.a.file = options.runs[0];
  question.b.file = options.runs[1];
  take_drafts(options, question);
  if (options.by) question.by = planner::label_groups(*options.by);
  question.progress = progress_line("reading", given.quiet());
  const planner::RunsDifference answer = planner::difference(question);
  Report report = report_on(answer, render::json_of(answer), render::spoken(answer));
  report.rows_of_empty = render::rows_of_empty_difference();
  report.files = facts_of_each(options.runs);
  return report;
}

}  // namespace

Command diff_command() {
  return {"diff",
          "Two runs or two drafts: the difference of tokens per step and time, what it is made of, and how sure it is",
          {{"positions", "/positions"}, {"groups", "/groups"}, {"parts", "/parts"}},
          setup_of<DiffOptions>(run)};
}

}  // namespace specdec::cli
