#pragma once

#include "traces/serving/log_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// The lines of oMLX about finished requests.
class OmlxLog {
 public:
  explicit OmlxLog(LogCounts& found) : found_(found) {}

  /// `MTP[3] finish=stop tokens=561 cycles=207 ... accept=352/454 (77.5%) depth[d1=155/200,...] d0=7 emits[...]`. Of
  /// the cycles d0 had no draft; releases that draft one token a cycle name neither depths nor d0.
  void read_heads(const LogLine& line);
  /// `vlm_mtp stats: request=e2af finish=stop rounds=1079 accepted=1414/2158 (65.5%) ... block_size=3`
  void read_draft_model(const LogLine& line);

 private:
  LogCounts& found_;
};

}  // namespace specdec::traces
