#include "traces/shard_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>
#include <utility>

#include "traces/column_reader.hpp"
#include "traces/formats/durable_file.hpp"
#include "traces/trace_columns.hpp"

namespace specdec::traces {

namespace fs = std::filesystem;

ShardList::ShardList(std::span<const fs::path> paths, const ReaderOptions& options, const ErrorSink& sink)
    : options_(options), sink_(sink) {
  for (const fs::path& path : paths) list(path);
  check_headers();
  if (positions_ > 0) return;
  if (!left_out_) {
    sink_(FileError(paths.front(), "trace", "without positions", "at least one position long"));
  } else if (!options_.on_error) {
    throw *left_out_;
  }
}

void ShardList::list(const fs::path& path) {
  std::vector<fs::path> shards;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    shards = list_folder(path);
  } else {
    shards.push_back(path);
  }
  for (std::size_t i = 0; i < shards.size(); ++i) entries_.push_back({std::move(shards[i]), 0, false, i == 0});
}

std::vector<fs::path> ShardList::list_folder(const fs::path& folder) {
  std::vector<fs::path> shards;
  std::vector<fs::path> strays;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& file = entry.path();
    const std::string name = file.filename().string();
    if (name.starts_with('.')) {
      notes_.push_back({"hidden_file", file.string() + " is not read"});
    } else if (file.extension() == DurableFile::suffix) {
      notes_.push_back({"unfinished_shard", file.string() + " was never completed and is not read"});
    } else if (file.extension() == shard_extension && entry.is_regular_file()) {
      shards.push_back(file);
    } else {
      strays.push_back(file);
    }
  }
  if (error) throw FileError(folder, "folder", "unreadable (" + error.message() + ")", "readable");
  std::sort(shards.begin(), shards.end());
  std::sort(strays.begin(), strays.end());
  for (const fs::path& stray : strays) {
    sink_(FileError(folder, "entry", stray.filename().string(),
                    "a shard, named *.safetensors: a trace's folder holds nothing else"));
  }
  if (shards.empty()) {
    sink_(FileError(folder, "folder", "without shards", "one with *.safetensors files"));
  }
  return shards;
}

void ShardList::check_headers() {
  MetadataMerger merger(sink_);
  std::vector<ListedShard> good;
  bool gap = false;
  for (ListedShard& entry : entries_) {
    entry.after_gap = std::exchange(gap, false);
    if (const std::optional<TraceShard> shard = checked_alone(entry.path)) {
      check_with_others(entry, *shard, merger);
      good.push_back(std::move(entry));
    } else {
      gap = true;
    }
  }
  entries_ = std::move(good);
  if (!entries_.empty()) metadata_ = merger.merged();
  merger.add_notes(notes_);
}

/// Empty if the shard is left out.
std::optional<TraceShard> ShardList::checked_alone(const fs::path& path) {
  try {
    TraceShard shard(path, sink_);
    if (shard.good()) return shard;
  } catch (const FileError& error) {
    if (!options_.salvage && !options_.on_error) throw with_hint(error);
    if (options_.on_error) options_.on_error(error);
    if (entries_.size() > 1) notes_.push_back({"shard_left_out", fmt::format("left out: {}", error.what())});
    if (!left_out_) left_out_ = error;
  }
  return std::nullopt;
}

void ShardList::check_with_others(ListedShard& entry, const TraceShard& shard, MetadataMerger& merger) {
  merger.add(entry.path, shard.metadata());
  if (shard.vocab()) merger.add_vocab(entry.path, *shard.vocab());
  require_same_index(entry.path, shard);
  entry.positions = shard.positions();
  positions_ += entry.positions;
  if (shard.tier() == Tier::accepted_length) depths_ = every_depth;
  if (shard.tier() == Tier::scalar)
    depths_ = std::max(depths_, ColumnReader::width_of(*shard.find(column::draft.token_logprob)));
  for (const auto& [name, reason] : shard.unread()) {
    if (!unread_.insert(name).second) continue;
    notes_.push_back({"tensor_not_read", fmt::format("{}: {} is not read: {}", entry.path.string(), name, reason)});
  }
}

/// Sequences cannot be determined if only some shards have seq or pos.
void ShardList::require_same_index(const fs::path& path, const TraceShard& shard) {
  const bool has_seq = shard.find(column::seq) != nullptr;
  const bool has_pos = shard.find(column::pos) != nullptr;
  if (index_from_.empty()) {
    index_from_ = path;
    has_seq_ = has_seq;
    has_pos_ = has_pos;
  }
  for (const auto& [name, has, had] : {std::tuple(column::seq, has_seq, has_seq_), {column::pos, has_pos, has_pos_}}) {
    if (has == had) continue;
    sink_(FileError(path, name, has ? "present" : "absent",
                    fmt::format("{}, as in {}", had ? "present" : "absent", index_from_.string())));
  }
}

FileError ShardList::with_hint(const FileError& error) const {
  if (entries_.size() < 2) return error;
  return {error.path(), error.location(), error.field(), error.found(),
          error.expected() + "; --salvage reads the shards that are good"};
}

}  // namespace specdec::traces
