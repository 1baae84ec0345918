#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "planner/sources/recording_files.hpp"
#include "traces/open_trace.hpp"
#include "traces/sharded_recording.hpp"

namespace specdec::cli {

/// TRACE... or --target and --draft: the recording that a command reads, with the options that say how.
class TraceInput {
 public:
  void declare(Options& options);

  /// The recording that was given.
  /// @throws UsageError if the options contradict each other
  planner::RecordingFiles recording() const { return {files_, options()}; }

  /// Opens the recording.
  /// @throws UsageError if the options contradict each other
  /// @throws traces::FileError if it cannot be read
  std::unique_ptr<traces::PositionSource> open() const;

  /// The files that were given, for functions that open them themselves.
  std::vector<std::filesystem::path> files() const { return {files_.begin(), files_.end()}; }
  traces::OpenOptions options() const;

  /// Puts the files of a recording that has been read into the report's.
  void add_files(const std::vector<std::filesystem::path>& files, Report& report) const;

  /// The facts of a recording's files of which several runs read a share each: they deal the files to hash among them.
  std::vector<nlohmann::ordered_json> shared_facts(const std::vector<std::string>& files,
                                                   const traces::Shard& shard) const;

  /// Puts the source's files into the report's, and its notes into the warnings. Call it when all has been read.
  void describe(const traces::PositionSource& source, Report& report) const;

 private:
  std::vector<std::string> files_;
  std::optional<std::string> target_;
  std::optional<std::string> draft_;
  std::string numbers_ = "auto";
  std::optional<std::string> target_array_;
  std::optional<std::string> draft_array_;
  bool salvage_ = false;
};

/// The facts of files that were read, for the report.
void add_files(const std::vector<std::filesystem::path>& files, Report& report);

}  // namespace specdec::cli
