#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/position_source.hpp"
#include "traces/trace_metadata.hpp"
#include "traces/trace_shard.hpp"

namespace specdec::traces {

/// The metadata of all files of a trace as one: what one file states holds for all, and two must not disagree.
class MetadataMerger {
 public:
  /// @param sink  receives contradictions; if it returns, the first file's value stays
  explicit MetadataMerger(const ErrorSink& sink) : sink_(sink) {}

  void add(const std::filesystem::path& path, const TraceMetadata& metadata);
  /// Adds the vocabulary of a file's rows.
  void add_vocab(const std::filesystem::path& path, std::int64_t vocab);

  /// Requires at least one file.
  TraceMetadata merged() const;
  void add_notes(std::vector<Note>& notes) const;

 private:
  void add_tasks(const std::filesystem::path& path, const std::vector<std::string>& names);

  const ErrorSink& sink_;
  std::filesystem::path first_;
  /// Each key with its value and the first file that states it.
  std::map<std::string, std::pair<std::string, std::filesystem::path>> strings_;
  std::vector<std::string> task_names_;
  std::filesystem::path tasks_from_;
  /// Unknown keys whose values differ.
  std::set<std::string> differing_;
};

}  // namespace specdec::traces
