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
  /// A shard ends after this many positions or bytes.
  std::int64_t shard_positions = std::int64_t{1} << 24U;
  std::int64_t shard_bytes = std::int64_t{1} << 30U;
  /// End shards only where a sequence ends, so that after a crash the rest consists of whole sequences.
  bool whole_sequences = false;
  /// Continue after the shards that a folder already holds, instead of refusing such a folder.
  bool resume = false;
  /// Positions of the whole trace, including those already there, if known: a trace for which the disk has no room is
  /// then refused before any of it is written.
  std::optional<std::int64_t> expected_positions = {};
};

/// Writes a specdec-trace: one file if the path ends in ".safetensors", else a folder of shards, which is created if
/// needed. A shard appears under its name only when it is completely on disk, so that a crash loses at most the
/// shard being written and leaves nothing that looks complete. Memory use does not depend on the size of a shard.
class TraceWriter {
 public:
  /// Reserves the place for this object during its lifetime.
  /// @throws FileError if the place is not writable, if another object, of any process, writes there, if the folder
  ///   holds anything else, if it holds shards and resume is not requested, or if its contents contradict
  ///   `metadata`
  TraceWriter(std::filesystem::path path, TraceMetadata metadata, WriterOptions options = {});
  /// Without finish() the shard being written is lost.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Positions in the shards that were already there.
  std::int64_t resumed_positions() const;
  /// Positions written since, including those of the shard being written.
  std::int64_t positions() const;

  /// Appends the columns that the batch has, including its numbering of sequences. A batch with other columns than the
  /// previous one begins a new shard; in a single file it is an error.
  /// @throws std::invalid_argument if a column's length does not agree with the batch's size
  /// @throws FileError if the disk reports an error, or has no room for the expected positions
  void write(const PositionBatch& batch);

  /// Sets the names of the task ids, if they became known only while reading; those given before must not change.
  void set_task_names(std::vector<std::string> names);

  /// Completes the trace.
  /// @throws FileError if no position was ever written, or the disk reports an error
  void finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Refuses a trace that another recorder, or the same with other settings, wrote: values that both state must agree,
/// and one list of task names must begin with the other.
/// @param path  path of the trace, for the error
/// @throws FileError naming the first entry that differs
void require_goes_on(const std::filesystem::path& path, const TraceMetadata& there, const TraceMetadata& metadata);

}  // namespace specdec::traces
