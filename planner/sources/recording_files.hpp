#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/label_groups.hpp"
#include "planner/assumption.hpp"
#include "traces/open_trace.hpp"

namespace specdec::planner {

/// A recording: the distributions of two models along a text, in any format of docs/reference/formats.md.
struct RecordingFiles {
  /// Files or a folder; empty if `how` names the files of a pair.
  std::vector<std::string> files;
  /// The arrays to use, and the meaning of the numbers, for formats that do not state it.
  traces::OpenOptions how = {};
};

/// Rules for interpreting a recording.
struct RecordingRules {
  /// If empty, the rule that the recording names, else rejection sampling.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// Log-probabilities are those that were sampled from, whatever the recording says.
  bool assume_processed = false;
  /// Also replay a text that is not the target's own.
  bool force_replay = false;

  /// @param followed  the rule that was used in the end
  std::vector<Assumption> assumptions(const traces::TraceMetadata& metadata, traces::AcceptanceRule followed) const;
};

/// The cost and yield that replay assumes for the steps at the ends of texts.
Assumption charge_of_text_ends();

/// Opens the recording. Component `sources`.
/// @throws QuestionError if `how` states what the format states itself, or a file is listed twice
/// @throws traces::FileError if it cannot be read
std::unique_ptr<traces::PositionSource> open_recording(const RecordingFiles& recording);

/// The recording with its sequences grouped by task (the empty label, or "task") or, with bounds, by "context": the
/// place in the sequence, where they are cut (traces::ContextStretches).
/// @throws QuestionError for another label, for "context" without bounds and for "task" with bounds
std::unique_ptr<traces::PositionSource> grouped_recording(std::unique_ptr<traces::PositionSource> recording,
                                                          const estimate::LabelGroups& groups);

/// Passes to `progress` the share of `source` read up to the end of `batch`, if both are known.
void tell_of_reading(const std::function<void(double share)>& progress, const traces::PositionSource& source,
                     const traces::PositionBatch& batch);

/// Refuses a --gamma above the longest draft that the accepted lengths of a recording tell of.
/// @param longest  planning::ReplayColumns::longest_draft
/// @param file     the recording's, where there are several
/// @throws QuestionError
void require_drafted(std::optional<std::int64_t> longest, std::int64_t gamma, const std::string& file = "");

}  // namespace specdec::planner
