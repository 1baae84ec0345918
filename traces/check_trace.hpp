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

/// The findings of a check of a trace.
struct TraceCheck {
  /// The first ones, in reading order, at most as many as requested.
  std::vector<FileError> findings;
  /// The total number of findings.
  std::int64_t count = 0;
  std::int64_t positions = 0;
  std::vector<Note> notes;
};

/// Receives the batch that a source read last.
using BatchSink = std::function<void(const PositionSource&, const PositionBatch&)>;

/// Reads a recording to its end and collects every inconsistency: containers, headers, ids, log-probabilities, sums of
/// rows, rounds. Formats other than specdec-trace are read to the first one.
/// @param look  also receives every batch, as long as nothing was found
/// @throws std::invalid_argument, UnpairedFile as open_trace does; anything that `look` throws
TraceCheck check_trace(std::span<const std::filesystem::path> files, const OpenOptions& options = {},
                       std::int64_t max_findings = 1000, const BatchSink& look = {});

/// Throws the first error that check_trace would find in the rows and lists of the batch that the source read last.
/// @throws FileError
void require_sound_rows(const PositionSource& source, const PositionBatch& batch);

/// The contents of a recording.
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
  /// Only tiers that occur.
  std::vector<TierCount> tiers;
  /// Positions by task id; -1 are those without.
  std::map<std::int32_t, std::int64_t> tasks;
  /// Number of distinct prompts; empty if some position has none.
  std::optional<std::int64_t> prompts;
  /// Columns that occur, by the names of docs/reference/formats.md, each with its type and shape in the first batch that has
  /// it, for instance "F32 (positions, 32000)".
  std::map<std::string, std::string> columns;
};

/// Reads a recording to its end, without its rows, and describes its contents. @throws FileError
TraceDescription describe_trace(PositionSource& source);

}  // namespace specdec::traces
