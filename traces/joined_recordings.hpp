#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/position_source.hpp"

namespace specdec::traces {

/// The metadata that recordings have in common. What one of them leaves open stays open, and so do other keys that
/// differ; task names are merged.
/// @throws FileError if two of them contradict each other, naming the later one's first file
TraceMetadata common_metadata(const std::vector<std::unique_ptr<PositionSource>>& sources);

/// Several recordings, one after the other, as one; positions and sequences are renumbered, task ids follow the names.
class JoinedRecordings : public PositionSource {
 public:
  /// @throws FileError as common_metadata does
  /// @throws std::invalid_argument if there are none
  explicit JoinedRecordings(std::vector<std::unique_ptr<PositionSource>> sources);

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override;
  std::string format() const override;
  std::vector<Note> notes() const override;
  std::int64_t depths() const override;
  bool read(PositionBatch& batch) override;
  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override;

 private:
  void adopt_tasks(PositionBatch& batch);

  std::vector<std::unique_ptr<PositionSource>> sources_;
  TraceMetadata metadata_;
  std::size_t current_ = 0;
  std::int64_t first_position_ = 0;  // first position of the current recording
  std::int64_t first_sequence_ = 0;
  std::int64_t positions_ = 0;  // positions read so far
  std::int64_t sequences_ = 0;
  std::vector<std::int32_t> task_ids_;  // ids here of the current recording's tasks
  std::vector<std::int64_t> sequence_;
  std::vector<std::int32_t> task_;
};

}  // namespace specdec::traces
