#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/open_trace.hpp"

namespace specdec::traces {

/// What checking a trace found.
struct TraceCheck {
  /// The first ones, in reading order, at most as many as asked for.
  std::vector<FileError> findings;
  /// How many there are in all.
  std::int64_t count = 0;
  std::int64_t positions = 0;
  std::vector<Note> notes;
};

/// Takes what a source handed out last.
using BatchSink = std::function<void(const PositionSource&, const PositionBatch&)>;

/// Reads a recording to its end and collects every inconsistency: containers, headers, ids, log-probabilities, sums of
/// rows, rounds. Formats other than specdec-trace are read to the first one.
/// @param look  gets every batch too, as long as nothing was found
/// @throws std::invalid_argument, UnpairedFile as open_trace does; what `look` throws
TraceCheck check_trace(std::span<const std::filesystem::path> files, const OpenOptions& options = {},
                       std::int64_t max_findings = 1000, const BatchSink& look = {});

/// Throws what check_trace would find first in the rows and lists of the batch that the source handed out last.
/// @throws FileError
void require_sound_rows(const PositionSource& source, const PositionBatch& batch);

/// What a recording holds.
struct TraceDescription {
  struct File {
    std::filesystem::path path;
    std::int64_t bytes = 0;
  };
  struct TierCount {
    Tier tier;
    std::int64_t positions = 0;
    std::int64_t sequences = 0;
  };
  std::string format;
  std::vector<File> files;
  TraceMetadata metadata;
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  std::int64_t shortest_sequence = 0;
  std::int64_t longest_sequence = 0;
  /// Those that occur.
  std::vector<TierCount> tiers;
  /// Positions by task id; -1 are those without.
  std::map<std::int32_t, std::int64_t> tasks;
  /// Different prompts; nothing where some position has none.
  std::optional<std::int64_t> prompts;
  /// Columns that occur, by the names of docs/trace_format.md, each with its type and shape in the first batch that has
  /// it, for instance "F32 (positions, 32000)".
  std::map<std::string, std::string> columns;
  std::vector<Note> notes;
};

/// Reads a recording to its end, rows unseen, and says what it holds. @throws FileError
TraceDescription describe_trace(PositionSource& source);

}  // namespace specdec::traces
