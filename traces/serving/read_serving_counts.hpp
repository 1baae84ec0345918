#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "traces/open_trace.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

/// Where a reader of counts puts what it finds. Counts are the reader's own object and change after the call.
struct CountsSink {
  std::function<void(const ServingCounts&)> take;
  std::function<void(const Note&)> warn = [](const Note&) {};
  /// Take all windows of vLLM's and SGLang's logs and all answers of llama.cpp's server, those in which nothing was
  /// drafted too, which have a window or a run and no counts: their times are wanted. Else such windows and answers are
  /// left out, and files without speculation are refused.
  bool plain_windows = false;
};

/// A format of counts; read_serving_counts.cpp lists them all, each more particular one before the more general.
struct CountsFormat {
  /// As the list of what is readable shows it.
  std::string_view name;
  /// Whether a file's content is in this format; never decided by the file's name.
  bool (*recognises)(const FileHead& head);
  /// Reads neighbouring files of this format in order; several scrapes of counters become their differences.
  void (*read)(std::span<const std::filesystem::path> files, const CountsSink& sink);
};

/// Tables that are counts, for messages about others.
inline constexpr std::string_view tables_of_counts =
    "a table of runs, whose first line names columns: gamma, or setting, output_tokens_per_second or ms_per_token, and "
    "concurrency or batch above one request";

/// Whether read_serving_counts would read a file that begins so.
bool recognised_counts(const FileHead& head);

/// Reads what servers count from files in any readable format, told from their content ("-" is standard input), and
/// hands over one unit after the other, in the order of the files; memory does not depend on their number.
/// @throws FileError for a file in no readable format, broken, empty or contradicting itself, with line and field
void read_serving_counts(std::span<const std::filesystem::path> files, const CountsSink& sink);

}  // namespace specdec::traces
