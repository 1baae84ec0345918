#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

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

/// Opens a specdec-trace, version 1: safetensors files as docs/reference/formats.md describes them. Each of `paths` is
/// one file or a folder of shards, read in the order of their names. Files are memory-mapped one after the other: whole
/// rows are views of them, so that memory use does not depend on the size of the trace. The headers of all shards are
/// checked, also against each other, before anything is read; reading throws a FileError naming tensor and row if a
/// value is impossible: an id outside the vocabulary, a log-probability above 0, NaN where it has no meaning. Users of
/// the rows must check whether they are distributions.
/// @throws FileError  @throws std::invalid_argument if there are no paths
std::unique_ptr<PositionSource> read_trace(std::span<const std::filesystem::path> paths, ReaderOptions options = {});
std::unique_ptr<PositionSource> read_trace(const std::filesystem::path& path, ReaderOptions options = {});

/// True if a file that begins like this is in safetensors.
bool is_safetensors(std::string_view head);

}  // namespace specdec::traces
