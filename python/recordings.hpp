#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/sources/recording_files.hpp"
#include "traces/memory_recording.hpp"
#include "traces/position_source.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::python {

using Array = nanobind::ndarray<nanobind::ro>;

/// A recording of what two models said of a text: in files, or in arrays that Python owns.
class Recording {
 public:
  /// @param of_columns  files were written for the recording alone, and no answer names them
  explicit Recording(planner::RecordingFiles files, bool of_columns = false)
      : files_(std::move(files)), of_columns_(of_columns) {}
  explicit Recording(traces::TraceMetadata metadata)
      : memory_(std::make_unique<traces::MemoryRecording>(std::move(metadata))) {}

  std::unique_ptr<traces::PositionSource> open() const {
    return memory_ ? memory_->open() : planner::open_recording(files_);
  }
  /// As they were named; empty where it is not in files.
  std::vector<std::string> files() const {
    if (memory_ || !files_.files.empty()) return files_.files;
    return {files_.how.target.string(), files_.how.draft.string()};
  }
  bool of_columns() const { return of_columns_; }
  /// The memory of a recording that is not in files.
  traces::MemoryRecording& memory() { return *memory_; }
  /// Holds an array as long as the recording.
  void keep(const Array& array) { arrays_.push_back(array); }

 private:
  planner::RecordingFiles files_;
  bool of_columns_ = false;
  std::unique_ptr<traces::MemoryRecording> memory_;
  std::vector<Array> arrays_;
};

/// Recordings and their acceptance, for specdec/_recording.py.
void bind_recordings(nanobind::module_& module);

}  // namespace specdec::python
