#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/position_batch.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::traces {

struct WriterOptions {
  /// A shard ends after so many positions or bytes.
  std::int64_t shard_positions = std::int64_t{1} << 24U;
  std::int64_t shard_bytes = std::int64_t{1} << 30U;
  /// End shards only where a sequence ends, so that what a crash leaves holds whole sequences.
  bool whole_sequences = false;
  /// Go on after the shards that a folder holds already, instead of refusing such a folder.
  bool resume = false;
  /// Positions of the whole trace, those that are there included, where that is known: what the disk has no room for is
  /// then refused before any of it is written.
  std::optional<std::int64_t> expected_positions = {};
};

/// Writes a specdec-trace: one file if the path ends in ".safetensors", else a folder of shards, which is made if it
/// is not there. A shard appears under its name only when all of it is on the disk, so that a crash loses at most the
/// shard being written and leaves nothing that reads as whole. Memory use does not depend on the size of a shard.
class TraceWriter {
 public:
  /// The place is this object's alone as long as it lives.
  /// @throws FileError if the place cannot be written, if another object, of any process, writes there, if the folder
  /// holds anything else, if it holds shards and
  ///   resume is not asked for, or if what it holds contradicts `metadata`
  TraceWriter(std::filesystem::path path, TraceMetadata metadata, WriterOptions options = {});
  /// Without finish() the shard being written is lost.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Positions in the shards that were there already.
  std::int64_t resumed_positions() const;
  /// Positions written since, those of the shard being written included.
  std::int64_t positions() const;

  /// Appends the columns that the batch has, its numbering of sequences included. A batch with other columns than the
  /// one before begins a new shard; in a single file it is refused.
  /// @throws std::invalid_argument if a column's length does not agree with the batch's size
  /// @throws FileError if the disk refuses, or has no room for what is expected
  void write(const PositionBatch& batch);

  /// The names of the task ids, where they became known only while reading; those given before stay as they are.
  void set_task_names(std::vector<std::string> names);

  /// Completes the shard being written, if there is one; what is written then begins the next. Without effect on a
  /// single file.
  void end_shard();

  /// Completes the trace.
  /// @throws FileError if no position was ever written, or the disk refuses
  void finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace specdec::traces
