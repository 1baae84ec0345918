#pragma once

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

}  // namespace specdec::planner
