#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/serving/log_line.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// Where the readers of one log put what they find, and what they all require of it.
class LogCounts {
 public:
  LogCounts(const std::filesystem::path& path, const CountsSink& sink) : path_(path), sink_(sink) {}

  ServingCounts counts_of(std::int64_t line, const char* engine, std::string_view format, CountUnit unit) const;
  void take(const ServingCounts& counts);
  /// A window in which nothing was drafted, for whoever wants its times.
  void take_window(const ServingCounts& counts);
  /// The log tells of speculation, even if nothing was drafted.
  void see_speculation() { speculates_ = true; }

  void warn(Note note) const { sink_.warn(std::move(note)); }
  const std::filesystem::path& path() const { return path_; }
  bool wants_plain_windows() const { return sink_.plain_windows; }
  bool taken() const { return taken_; }
  bool any_window() const { return any_window_; }
  bool speculates() const { return speculates_; }

 private:
  const std::filesystem::path& path_;
  const CountsSink& sink_;
  bool taken_ = false;
  bool any_window_ = false;
  bool speculates_ = false;
};

/// A printed ratio must be that of the counts beside it. `unit` of its last digit.
void require_ratio(const LogLine& line, std::string_view field, double printed, double exact, double unit);

/// Sets the rounds that a line's roundings come from: of its mean length and of its rates by position.
/// @param full_drafts, passes  as PrintedRates
void count_back(const LogLine& line, ServingCounts& counts, double length, const std::vector<double>& rates,
                bool full_drafts, std::optional<double> passes = std::nullopt);

}  // namespace specdec::traces
