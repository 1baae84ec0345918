#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "traces/open_trace.hpp"

namespace specdec::cli {

/// TRACE... or --target and --draft: the recording that a command reads, with the options that say how.
class TraceInput {
 public:
  TraceInput() = default;
  /// As if these files were given, and nothing about them.
  explicit TraceInput(std::vector<std::string> files) : files_(std::move(files)) {}

  void declare(Options& options);

  /// Opens the recording.
  /// @throws UsageError if the options contradict each other
  /// @throws traces::FileError if it cannot be read
  std::unique_ptr<traces::PositionSource> open() const;

  /// What was given, for functions that open the files themselves.
  std::vector<std::filesystem::path> files() const { return {files_.begin(), files_.end()}; }
  traces::OpenOptions options() const;

  /// Puts the source's files into the report's, and its notes into the warnings. Call it when all has been read.
  void describe(const traces::PositionSource& source, Report& report) const;

 private:
  /// @throws UsageError if an option says what this format says itself
  void require_read(std::string_view format) const;

  std::vector<std::string> files_;
  std::optional<std::string> target_;
  std::optional<std::string> draft_;
  std::string numbers_ = "auto";
  std::optional<std::string> target_array_;
  std::optional<std::string> draft_array_;
  bool salvage_ = false;
  bool hash_ = false;
};

/// @throws UsageError if a file stands there twice
void require_distinct(const std::vector<std::filesystem::path>& files);

/// The facts of files that were read, and what their reader noted, for the report.
void add_files(const std::vector<std::filesystem::path>& files, bool always_hash, Report& report);
void add_notes(const std::vector<traces::Note>& notes, Report& report);

}  // namespace specdec::cli
