#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traces/open_trace.hpp"

namespace specdec::planner {

/// A recording: what two models said of a text, in any format of docs/trace_format.md.
struct RecordingFiles {
  /// Files or a folder; empty where `how` names the files of a pair.
  std::vector<std::string> files;
  /// Which arrays, and what the numbers are, where the format does not say it.
  traces::OpenOptions how = {};
};

/// Opens it. Component `sources`.
/// @throws QuestionError where `how` says what the format says itself, or a file is there twice
/// @throws traces::FileError if it cannot be read
std::unique_ptr<traces::PositionSource> open_recording(const RecordingFiles& recording);

/// Tells `progress` the share of `source` that was read once `batch` was, where both are known.
void tell_of_reading(const std::function<void(double share)>& progress, const traces::PositionSource& source,
                     const traces::PositionBatch& batch);

}  // namespace specdec::planner
