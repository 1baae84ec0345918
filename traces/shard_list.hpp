#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "traces/metadata_merger.hpp"
#include "traces/trace_reader.hpp"
#include "traces/trace_shard.hpp"

/// Internal to traces.
namespace specdec::traces {

/// A shard between the check of all headers and its reading.
struct ListedShard {
  std::filesystem::path path;
  std::int64_t positions = 0;
  /// True if a shard before it was left out.
  bool after_gap = false;
  /// True if it is the first of those that one argument named.
  bool in_new_argument = false;
};

/// The shards that files and folders name, each header checked alone and with the others.
class ShardList {
 public:
  /// @throws FileError from `sink`, and for an unreadable folder
  ShardList(std::span<const std::filesystem::path> paths, const ReaderOptions& options, const ErrorSink& sink);

  /// Those that are not left out, in the order of reading.
  const std::vector<ListedShard>& shards() const { return entries_; }
  const TraceMetadata& metadata() const { return metadata_; }
  const std::vector<Note>& notes() const { return notes_; }
  std::int64_t positions() const { return positions_; }
  /// As PositionSource::depths().
  std::int64_t depths() const { return depths_; }

 private:
  void list(const std::filesystem::path& path);
  std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);
  void check_headers();
  std::optional<TraceShard> checked_alone(const std::filesystem::path& path);
  void check_with_others(ListedShard& entry, const TraceShard& shard, MetadataMerger& merger);
  void require_same_index(const std::filesystem::path& path, const TraceShard& shard);
  FileError with_hint(const FileError& error) const;

  const ReaderOptions& options_;
  const ErrorSink& sink_;
  std::vector<ListedShard> entries_;
  TraceMetadata metadata_;
  std::vector<Note> notes_;
  std::int64_t positions_ = 0;
  std::int64_t depths_ = 1;
  /// The reason why the first of the omitted shards is left out.
  std::optional<FileError> left_out_;
  std::set<std::string> unread_;
  std::filesystem::path index_from_;
  bool has_seq_ = false;
  bool has_pos_ = false;
};

}  // namespace specdec::traces
