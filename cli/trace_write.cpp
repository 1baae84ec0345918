#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/trace_input.hpp"
#include "cli/trace_output.hpp"
#include "cli/usage_error.hpp"
#include "planner/distinct_files.hpp"
#include "render/text.hpp"
#include "traces/joined_recordings.hpp"
#include "traces/selected_positions.hpp"

/// specdec trace convert, slice and merge: recordings that become a specdec-trace.
namespace specdec::cli {

using namespace render;
namespace {

using traces::PositionSource;

/// Recordings whose task names are known at their end only are read once for them.
traces::TraceMetadata whole_metadata(PositionSource& source) {
  traces::PositionBatch batch;
  if (source.format() != "specdec-trace") {
    while (source.read(batch)) continue;
  }
  return source.metadata();
}

struct ConvertOptions {
  TraceInput input;
  TraceOutput output;
  TierChoice tier;

  void declare(Options& options) {
    output.declare(options);
    options.group("Tier");
    options.choice("--tier", tier.tier, {"same", "full", "topk", "scalar"}, "how much of each position to keep");
    options.integer("--k", tier.k, {.lo = 1, .hi = 1'000'000}, "tokens that --tier topk keeps");
    options.integer("--threads", tier.threads, {.lo = 1, .hi = 1024}, "threads of the conversion");
    input.declare(options);
  }
};

Report run_convert(const ConvertOptions& o, const Options& options) {
  require_k_of_tier(options, o.tier.tier);
  o.output.require_path();
  const traces::TraceMetadata metadata = whole_metadata(*o.input.open());
  const auto source = o.input.open();
  traces::TraceWriter writer = o.output.open(metadata, {.expected_positions = source->positions()});
  const WrittenTrace written =
      copy_trace(*source, writer, o.tier.conversion(), progress_line("writing", options.quiet()));
  Report report = report_of(written, o.output);
  o.input.describe(*source, report);
  return report;
}

struct SliceOptions {
  TraceInput input;
  TraceOutput output;
  std::optional<std::string> tasks;
  std::optional<std::string> sequences;
  std::optional<std::string> positions;

  void declare(Options& options) {
    output.declare(options);
    options.group("Part (all that are given must hold)");
    options.text("--tasks,--task", tasks, "LIST", "names of tasks, separated by commas");
    options.text("--sequences", sequences, "FIRST:END", "sequences counted from 0, END not included");
    options.text("--positions", positions, "FIRST:END", "positions likewise, counted on from one sequence to the next");
    input.declare(options);
  }
};

/// "100:200", ":200" or "100:": from the first on, up to but without the second.
traces::Selection::Range range_of(std::string_view option, const std::optional<std::string>& text) {
  traces::Selection::Range range;
  if (!text) return range;
  const auto parts = split(*text, ':');
  if (parts.size() != 2) refuse(option, *text, "FIRST:END, the END not included; either may be left out");
  if (!parts[0].empty()) range.first = parse_integer(option, parts[0], 0, range.end - 1);
  if (!parts[1].empty()) range.end = parse_integer(option, parts[1], 0, range.end);
  if (range.end <= range.first) refuse(option, *text, "FIRST:END with FIRST below END, which is not included");
  return range;
}

traces::Selection selection_of(const SliceOptions& o) {
  traces::Selection selection;
  if (o.tasks) {
    for (const std::string_view task : split(*o.tasks, ',')) selection.tasks.emplace_back(task);
  }
  selection.sequences = range_of("--sequences", o.sequences);
  selection.positions = range_of("--positions", o.positions);
  return selection;
}

/// Tasks without names have numbers, known at the end of the recording only.
void require_tasks(const std::vector<std::string>& tasks, const std::vector<std::string>& names) {
  for (const std::string& task : tasks) {
    if (!names.empty() && std::find(names.begin(), names.end(), task) == names.end())
      refuse("--tasks", task, fmt::format("one of {}", visible(fmt::format("{}", fmt::join(names, ", ")))));
  }
}

Report run_slice(const SliceOptions& o, const Options& options) {
  o.output.require_path();
  if (!o.tasks && !o.sequences && !o.positions) {
    throw UsageError("one of --tasks, --sequences, --positions is needed; trace convert writes a whole recording");
  }
  const traces::Selection selection = selection_of(o);
  const traces::TraceMetadata metadata = whole_metadata(*o.input.open());
  require_tasks(selection.tasks, metadata.task_names);
  traces::SelectedPositions source(o.input.open(), selection);
  traces::TraceWriter writer = o.output.open(metadata);
  const WrittenTrace written = [&] {
    try {
      return copy_trace(source, writer, std::nullopt, progress_line("writing", options.quiet()));
    } catch (const NothingToWrite& error) {
      throw UsageError(fmt::format("{}: none of positions 0:{}, in sequences 0:{}, is in the part that is asked for",
                                   error.what(), source.positions_read(), source.sequences_read()));
    } catch (const traces::UnknownTask& error) {
      refuse("--tasks", error.task(), "the number of a task in the recording, whose tasks have no names");
    }
  }();
  Report report = report_of(written, o.output);
  o.input.describe(source, report);
  return report;
}

struct MergeOptions {
  std::vector<std::string> files;
  TraceOutput output;

  void declare(Options& options) {
    output.declare(options);
    options.arguments("TRACE", files, "recordings, each a file or a folder, in any readable format");
  }
};

std::unique_ptr<traces::JoinedRecordings> joined(const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<PositionSource>> sources;
  for (const std::string& file : files) {
    const std::filesystem::path path = file;
    sources.push_back(traces::open_trace({&path, 1}));
  }
  return std::make_unique<traces::JoinedRecordings>(std::move(sources));
}

Report run_merge(const MergeOptions& o, const Options& options) {
  o.output.require_path();
  const traces::TraceMetadata metadata = whole_metadata(*joined(o.files));
  const auto source = joined(o.files);
  planner::require_distinct("TRACE", source->files());
  traces::TraceWriter writer = o.output.open(metadata, {.expected_positions = source->positions()});
  const WrittenTrace written = copy_trace(*source, writer, std::nullopt, progress_line("writing", options.quiet()));
  Report report = report_of(written, o.output);
  add_files(source->files(), report);
  append(report.warnings, same_content(report.files));
  append(report.warnings, source->notes());
  return report;
}

}  // namespace

Command trace_convert_command() {
  return {"trace convert",
          "Write a recording of any readable format as a specdec-trace",
          {{"written", "/rows"}},
          setup_of<ConvertOptions>(run_convert),
          true};
}

Command trace_slice_command() {
  return {"trace slice",
          "Write a part of a recording: tasks, sequences, positions",
          {{"written", "/rows"}},
          setup_of<SliceOptions>(run_slice),
          true};
}

Command trace_merge_command() {
  return {"trace merge",
          "Write several recordings as one; their sequences are numbered on",
          {{"written", "/rows"}},
          setup_of<MergeOptions>(run_merge),
          true};
}

}  // namespace specdec::cli
