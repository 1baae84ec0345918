#include "planner/sources/recording_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <string_view>

#include "analysis/planning/replay_columns.hpp"
#include "planner/distinct_files.hpp"
#include "planner/question_error.hpp"
#include "traces/context_stretches.hpp"

namespace specdec::planner {
namespace {

/// Refuses options that the format ignores.
void require_read(const traces::OpenOptions& how, std::string_view format) {
  const struct {
    std::string_view option;
    bool given;
    std::vector<std::string_view> formats;
  } uses[] = {{"--numbers", how.space.has_value(), {"NPY pair", "NPZ", "JSONL of token pairs", "CSV of token pairs"}},
              {"--target-array", !how.target_array.empty(), {"NPZ", "JSONL of token pairs", "CSV of token pairs"}},
              {"--draft-array",
               !how.draft_array.empty(),
               {"NPZ", "position traces", "JSONL of token pairs", "CSV of token pairs"}}};
  for (const auto& [option, given, formats] : uses) {
    if (!given || std::find(formats.begin(), formats.end(), format) != formats.end()) continue;
    throw QuestionError(fmt::format("{} is given, but goes with {} only, and the recording is {}", option,
                                    fmt::join(formats, ", "), format));
  }
}

}  // namespace

std::vector<Assumption> RecordingRules::assumptions(const traces::TraceMetadata& metadata,
                                                    traces::AcceptanceRule followed) const {
  std::vector<Assumption> assumptions = {{"acceptance", traces::name_of(followed),
                                          acceptance            ? "user"
                                          : metadata.acceptance ? "file"
                                                                : "default"}};
  assumptions.push_back({"text from", metadata.path == traces::TextSource::other ? "elsewhere" : "the target",
                         metadata.path == traces::TextSource::unknown ? "default" : "file"});
  if (assume_processed) assumptions.push_back({"log-probabilities", "processed", "user"});
  return assumptions;
}

Assumption charge_of_text_ends() {
  return {"steps at the ends of texts", "charged for all their drafts, but yielding only the tokens left", "default"};
}

std::unique_ptr<traces::PositionSource> open_recording(const RecordingFiles& recording) {
  const std::vector<std::filesystem::path> paths(recording.files.begin(), recording.files.end());
  auto source = traces::open_trace(paths, recording.how);
  require_read(recording.how, source->format());
  if (recording.how.target.empty()) require_distinct("TRACE", source->files());
  return source;
}

std::unique_ptr<traces::PositionSource> grouped_recording(std::unique_ptr<traces::PositionSource> recording,
                                                          const estimate::LabelGroups& groups) {
  const bool by_task = groups.label.empty() || groups.label == "task";
  if (by_task && groups.bounds.empty()) return recording;
  if (groups.label != "context" || groups.bounds.empty() || groups.bounds.front() <= 0) {
    refuse("--by", groups.label, "task or context:N1,N2,... with places above 0: what a recording tells of its texts");
  }
  return std::make_unique<traces::ContextStretches>(std::move(recording), groups.bounds, groups.ranges());
}

void tell_of_reading(const std::function<void(double share)>& progress, const traces::PositionSource& source,
                     const traces::PositionBatch& batch) {
  if (!progress || !source.positions()) return;
  progress(static_cast<double>(batch.first + batch.size) / static_cast<double>(*source.positions()));
}

void require_drafted(std::optional<std::int64_t> longest, std::int64_t gamma, const std::string& file) {
  if (!longest || gamma <= *longest) return;
  refuse("--gamma", fmt::format("{}", gamma),
         fmt::format("at most {}{}: {}", *longest, file.empty() ? "" : " for " + file,
                     planning::no_longer_draft(*longest)));
}

}  // namespace specdec::planner
