#pragma once

#include <optional>
#include <string>

#include "traces/serving/log_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// The lines of llama.cpp's server and of its speculative programs.
class LlamaCppLog {
 public:
  struct Drafted {
    double drafts = 0, tokens = 0;
  };

  explicit LlamaCppLog(LogCounts& found) : found_(found) {}

  /// The library that only chains use has logged something: llama-speculative-simple, not llama-speculative.
  void see_library() { chain_ = true; }
  /// `eval time = 783.55 ms / 64 tokens (...)`, of the answer whose acceptance follows.
  void read_time(const LogLine& line);
  void read_request(const LogLine& line, const LogText& text);
  /// `code_cpp  pred= 192 draft= 167 acc= 149 rate=0.892 tok/s=22.1`, an answer's timings as mtp-bench.py prints them.
  void read_answer(const LogLine& line);
  /// The lines behind n_draft, up to `accept`. Every pass of the target puts out what it accepted and one token of its
  /// own, so the passes are the tokens less the accepted drafts.
  /// @param text  at the line; goes on to the last that is read
  void read_print(const LogLine& first, LogText& text);

 private:
  std::optional<double> passes_of_answer(const LogLine& line, double accepted);
  std::optional<double> rounds_of_answer(const ServingCounts& counts, const LogText& text);

  LogCounts& found_;
  std::optional<double> answer_tokens_;  // tokens of the last answer, until its acceptance takes them
  std::string answer_of_;                // its slot and task
  Drafted since_start_;                  // of the statistics behind the last answer
  bool chain_ = false;
};

}  // namespace specdec::traces
