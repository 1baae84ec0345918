#pragma once

#include <map>
#include <string>

#include "traces/serving/log_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// SGLang's lines of batches.
class SglangLog {
 public:
  explicit SglangLog(LogCounts& found) : found_(found) {}

  /// The arguments that the server was started with, which say how all that follows drafts.
  void read_arguments(const LogLine& line);
  void read_prompts(const LogLine& line);
  void read_decoding(const LogLine& line);

 private:
  LogCounts& found_;
  ServingCounts drafts_;  // of the arguments: shape, lengths and method
  std::map<std::string, bool> prompts_;  // by rank: some were read since its last decode line
};

}  // namespace specdec::traces
