#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/serving/log_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// vLLM's lines: of the engine's throughput, and of what was drafted since the last.
class VllmLog {
 public:
  explicit VllmLog(LogCounts& found) : found_(found) {}

  /// The configuration of speculation, as the server prints it at its start.
  void read_configuration(const LogLine& line);
  void read_engine(const LogLine& line);
  void read_counts(const LogLine& line);
  /// At the end of the log.
  void finish();

 private:
  void take_pending_window();
  void attach_window(ServingCounts& counts);
  static void state_throughput(const LogLine& line, ServingCounts& counts);
  static std::optional<double> steps_between_lines(const LogLine& line, const ServingCounts& counts);

  LogCounts& found_;
  std::optional<EngineWindow> window_;  // that of the last engine line, until counts take it
  std::int64_t window_line_ = 0;
  std::string engine_;
  std::string draft_method_;
  std::int64_t idle_intervals_ = 0, first_idle_line_ = 0;  // in which nothing was drafted
};

}  // namespace specdec::traces
