#include "traces/serving/read_serving_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <string>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/serving/bench_results.hpp"
#include "traces/serving/engine_log.hpp"
#include "traces/serving/iteration_stats.hpp"
#include "traces/serving/position_trace_counts.hpp"
#include "traces/serving/prometheus_api.hpp"
#include "traces/serving/prometheus_text.hpp"
#include "traces/serving/response_counts.hpp"
#include "traces/serving/spooled_input.hpp"
#include "traces/serving/stored_acceptance.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// Every format that can be read, each more particular one before the more general.
std::vector<CountsFormat> all_counts_formats() {
  return {
      prometheus_api_format(),
      vllm_requests_format(),
      tensorrt_llm_requests_format(),
      sglang_responses_format(),
      llama_server_timings_format(),
      sglang_bench_format(),
      vllm_bench_format(),
      tensorrt_llm_iterations_format(),
      spec_bench_format(),
      eagle_format(),
      position_trace_counts_format(),
      prometheus_text_format(),
      engine_log_format(),
  };
}

std::string names_of(std::span<const CountsFormat> formats) {
  std::string names;
  for (const CountsFormat& format : formats) names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  return names;
}

std::size_t index_of_format(const fs::path& file, std::span<const CountsFormat> formats) {
  const FileHead head = FileHead::of(file);
  if (head.folder) {
    throw FileError(file, FileError::whole_file(), "file", "a folder", "a file in one of: " + names_of(formats));
  }
  if (head.size == 0 || !head.compression().empty()) head.refuse_format("in one of: " + names_of(formats));
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const CountsFormat& f) { return f.recognises(head); });
  if (found == formats.end()) head.refuse_format("in one of: " + names_of(formats));
  return static_cast<std::size_t>(found - formats.begin());
}

/// What is read, streams under the path of their copies, and how to call it by the names that were given.
class Inputs {
 public:
  explicit Inputs(std::span<const fs::path> files) {
    if (std::count(files.begin(), files.end(), fs::path("-")) > 1) {
      throw FileError("-", FileError::whole_file(), "file", "standard input given twice", "given once");
    }
    for (const fs::path& file : files) {
      given_.push_back(file);
      if (is_stream(file)) {
        spooled_.emplace_back(file);
        read_.push_back(spooled_.back().path());
      } else {
        read_.push_back(file);
      }
    }
  }

  std::span<const fs::path> paths() const { return read_; }

  fs::path given(const fs::path& read) const {
    const auto found = std::find(read_.begin(), read_.end(), read);
    return found == read_.end() ? read : given_[static_cast<std::size_t>(found - read_.begin())];
  }

  /// A message with the given names in place of the copies' paths.
  std::string named(std::string message) const {
    for (std::size_t i = 0; i < read_.size(); ++i) {
      if (read_[i] == given_[i]) continue;
      const std::string copy = read_[i].string();
      const std::string name = given_[i].string();
      for (std::size_t at = 0; (at = message.find(copy, at)) != std::string::npos; at += name.size()) {
        const std::size_t behind = at + copy.size();
        const bool longer = behind < message.size() && std::isdigit(static_cast<unsigned char>(message[behind])) != 0;
        if (!longer) message.replace(at, copy.size(), name);
      }
    }
    return message;
  }

 private:
  std::vector<fs::path> given_, read_;
  std::deque<SpooledInput> spooled_;
};

void read_inputs(const Inputs& inputs, const CountsSink& sink) {
  const std::vector<CountsFormat> formats = all_counts_formats();
  const std::span<const fs::path> files = inputs.paths();
  std::vector<std::size_t> kinds;
  for (const fs::path& file : files) kinds.push_back(index_of_format(file, formats));
  for (std::size_t first = 0; first < files.size();) {
    std::size_t end = first + 1;
    while (end < files.size() && kinds[end] == kinds[first]) ++end;
    formats[kinds[first]].read(files.subspan(first, end - first), sink);
    first = end;
  }
}

}  // namespace

void read_serving_counts(std::span<const fs::path> files, const CountsSink& sink) {
  const Inputs inputs(files);
  ServingCounts renamed;
  const CountsSink outer = {
      [&](const ServingCounts& counts) {
        const fs::path given = inputs.given(counts.file);
        if (given == counts.file) return sink.take(counts);
        renamed = counts;
        renamed.file = given;
        sink.take(renamed);
      },
      [&](const CountsWarning& warning) {
        sink.warn({warning.code, inputs.named(warning.message)});
      },
      sink.plain_windows,
  };
  try {
    read_inputs(inputs, outer);
  } catch (const FileError& error) {
    const fs::path given = inputs.given(error.path());
    if (given == error.path()) throw;
    throw FileError(given, error.location(), error.field(), inputs.named(error.found()),
                    inputs.named(error.expected()));
  }
}

}  // namespace specdec::traces
