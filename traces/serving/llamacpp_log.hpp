#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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
  /// `eval time = 783.55 ms / 64 tokens (...)`, of the answer whose acceptance follows, if it drafted.
  void read_time(const LogLine& line, const LogText& text);
  void read_request(const LogLine& line, const LogText& text);
  /// `code_cpp  pred= 192 draft= 167 acc= 149 rate=0.892 tok/s=22.1`, an answer's timings as mtp-bench.py prints them.
  void read_answer(const LogLine& line);
  /// The lines behind n_draft, up to `accept`. Every pass of the target puts out what it accepted and one token of its
  /// own, so the passes are the tokens less the accepted drafts.
  /// @param text  at the line; goes on to the last that is read
  void read_print(const LogLine& first, LogText& text);
  void finish() { take_plain_answer(); }

 private:
  struct Answer {
    std::int64_t line;
    double tokens, milliseconds;
    std::string slot_and_task;
    std::optional<double> prompt_tokens;
  };
  /// The answer of a line's slot and task, which is taken then; empty if its tokens are not those of so many accepted.
  std::optional<Answer> answer_of(const LogLine& line, double accepted);
  /// Makes a run of the answer where times are wanted.
  void add_times(const Answer& answer, ServingCounts& counts) const;
  /// Hands over the last answer if no acceptance has taken it.
  void take_plain_answer();
  std::optional<double> rounds_of_answer(const ServingCounts& counts, const LogText& text);

  LogCounts& found_;
  std::optional<std::pair<std::string, double>> prompt_;  // slot and task, and tokens read, until its answer
  std::optional<Answer> answer_;                          // the last one, until its acceptance takes it
  Drafted since_start_;                                   // of the statistics behind the last answer
  bool chain_ = false;
};

}  // namespace specdec::traces
