#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/open_trace.hpp"
#include "traces/position_source.hpp"

namespace specdec::traces {

struct ReaderOptions {
  /// Leave out shards that are unreadable, with a note for each, instead of refusing the trace.
  bool salvage = false;
  /// Called for each inconsistency that would make the reader throw; unreadable shards are then left out. For checking.
  std::function<void(const FileError&)> on_error;
  /// The most positions, and bytes of whole rows or of top-k columns, in one batch; but at least one position.
  std::int64_t batch_positions = 65536;
  std::int64_t batch_bytes = std::int64_t{64} << 20U;
};

/// A specdec-trace, version 1: safetensors files as docs/reference/formats.md describes them. Each of `paths` is one file or
/// a folder of shards, read in the order of their names. Files are memory-mapped one after the other: whole rows are
/// views of them, so that memory use does not depend on the size of the trace.
class TraceReader : public PositionSource {
 public:
  /// Checks the headers of all shards, including against each other, before anything is read.
  /// @throws FileError
  explicit TraceReader(std::span<const std::filesystem::path> paths, ReaderOptions options = {});
  explicit TraceReader(const std::filesystem::path& path, ReaderOptions options = {});
  ~TraceReader() override;

  const TraceMetadata& metadata() const override;
  std::vector<std::filesystem::path> files() const override;
  std::string format() const override { return "specdec-trace"; }
  std::vector<Note> notes() const override;
  std::optional<std::int64_t> positions() const override;
  std::int64_t depths() const override;
  /// @throws FileError naming tensor and row if a value is impossible: an id outside the vocabulary, a log-probability
  ///   above 0, NaN where it has no meaning. Users of the rows must check whether they are distributions.
  bool read(PositionBatch& batch) override;
  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The entry of open_trace: any safetensors file.
TraceFormat trace_format();

}  // namespace specdec::traces
