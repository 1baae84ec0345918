#include "traces/serving/read_serving_counts.hpp"
#include "traces/serving/counts_formats.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// Every format that can be read, each more particular one before the more general.
std::vector<CountsFormat> all_counts_formats() {
  return {
      prometheus_api_format(),
      aiperf_records_format(),
      aiperf_summary_format(),
      guidellm_format(),
      speed_bench_format(),
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
      engine_log_format(),
      run_table_format(),
      prometheus_text_format(),
  };
}

/// What `counters` and `plan --bench` read.
constexpr std::string_view readable =
    "counters, a log or answers of a server, results of a benchmark or a table of runs: docs/reference/formats.md";

/// Refuses JSON that holds lengths or rates and no counts, such as SpecForge's results and speculation_profile.json.
void refuse_summaries(const FileHead& head) {
  const auto has = [&](std::string_view key) { return mentions_key(head.json(), key); };
  if (head.json().empty() || !(has("accept_length") || has("mean_accept_length") || has("conditional_accept_rates")))
    return;
  throw FileError(head.path, "content", "a JSON summary in no known format",
                  "a table of runs with its figures: concurrency, gamma, output_tokens_per_second, tokens_per_step, or "
                  "num_drafts, num_draft_tokens, num_accepted_tokens");
}

std::size_t index_of_format(const fs::path& file, std::span<const CountsFormat> formats) {
  const FileHead head = FileHead::of(file);
  if (head.folder) {
    throw FileError(file, "file", "a folder", std::string(readable));
  }
  const bool is_text = head.size > 0 && head.compression().empty();
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const CountsFormat& f) { return is_text && f.recognises(head); });
  if (found != formats.end()) return static_cast<std::size_t>(found - formats.begin());
  if (head.size > 0 && recognised_trace(head)) {
    throw FileError(file, "content", "a recording, which `specdec analyze` reads", std::string(readable));
  }
  if (is_text) refuse_summaries(head);
  head.refuse_format(std::string(readable), tables_of_counts);
}

}  // namespace

bool recognised_counts(const FileHead& head) {
  if (head.folder || head.size == 0 || !head.compression().empty()) return false;
  const std::vector<CountsFormat> formats = all_counts_formats();
  return std::any_of(formats.begin(), formats.end(), [&](const CountsFormat& f) { return f.recognises(head); });
}

void read_serving_counts(std::span<const fs::path> files, const CountsSink& sink) {
  const KeptStreams streams;
  const std::vector<CountsFormat> formats = all_counts_formats();
  std::vector<std::size_t> kinds;
  for (const fs::path& file : files) kinds.push_back(index_of_format(file, formats));
  for (std::size_t first = 0; first < files.size();) {
    std::size_t end = first + 1;
    while (end < files.size() && kinds[end] == kinds[first]) ++end;
    formats[kinds[first]].read(files.subspan(first, end - first), sink);
    first = end;
  }
}

}  // namespace specdec::traces
