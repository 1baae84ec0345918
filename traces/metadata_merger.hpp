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

/// The metadata of all files of a trace as one: what one file says holds for all, and two may not say different things.
class MetadataMerger {
 public:
  /// @param sink  gets contradictions; when it returns, the first file's word stands
  explicit MetadataMerger(const ErrorSink& sink) : sink_(sink) {}

  void add(const std::filesystem::path& path, const TraceMetadata& metadata);
  /// The vocabulary that a file's rows have.
  void add_vocab(const std::filesystem::path& path, std::int64_t vocab);

  /// Of at least one file.
  TraceMetadata merged() const;
  void add_notes(std::vector<Note>& notes) const;

 private:
  void add_tasks(const std::filesystem::path& path, const std::vector<std::string>& names);

  const ErrorSink& sink_;
  std::filesystem::path first_;
  /// Each key with its value and the file that said it first.
  std::map<std::string, std::pair<std::string, std::filesystem::path>> strings_;
  std::vector<std::string> task_names_;
  std::filesystem::path tasks_from_;
  /// Keys that the format does not know and whose values differ.
  std::set<std::string> differing_;
};

}  // namespace specdec::traces
