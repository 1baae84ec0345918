#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/forwarding_source.hpp"

namespace specdec::traces {

/// The positions of a recording to keep; empty fields keep all.
struct Selection {
  /// The numbers first, first + 1, ..., end - 1, counted over the whole recording.
  struct Range {
    std::int64_t first = 0;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();

    bool contains(std::int64_t number) const { return first <= number && number < end; }
  };
  /// By name, or by number if the recording names none; empty keeps every position, including those without a task.
  std::vector<std::string> tasks;
  Range sequences;
  Range positions;
};

/// A requested task that the recording does not have.
class UnknownTask : public std::invalid_argument {
 public:
  explicit UnknownTask(const std::string& task);
  const std::string& task() const noexcept { return task_; }

 private:
  std::string task_;
};

/// A part of another recording. Each remaining stretch of a sequence is a sequence; they are renumbered, and
/// places are unchanged.
class SelectedPositions : public ForwardingSource {
 public:
  SelectedPositions(std::unique_ptr<PositionSource> source, Selection selection);

  /// Unknown before the end.
  std::optional<std::int64_t> positions() const override { return std::nullopt; }
  /// @throws FileError as the other source does
  /// @throws UnknownTask at the end if the recording has none of the requested tasks
  bool read(PositionBatch& batch) override;
  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override;

  /// Positions read from the other source, and sequences, up to where the part was looked for.
  std::int64_t positions_read() const { return positions_read_; }
  std::int64_t sequences_read() const { return sequences_read_; }

 private:
  bool keeps(std::int64_t i);
  void hand_out(std::int64_t start, std::int64_t count, PositionBatch& batch);
  void require_known_tasks() const;

  Selection selection_;
  PositionBatch whole_;  // the batch that the other source read last
  std::int64_t positions_read_ = 0, sequences_read_ = 0;
  std::int64_t next_ = 0;          // its first position that has not been processed
  std::int64_t positions_ = 0;     // positions read so far
  std::int64_t sequences_ = 0;     // sequences begun so far
  std::int64_t end_of_last_ = -1;  // the position after the last one read, and its sequence, there
  std::int64_t sequence_of_last_ = -1;
  std::set<std::string> found_;  // those of the requested tasks
  std::vector<std::int64_t> sequence_;
};

}  // namespace specdec::traces
