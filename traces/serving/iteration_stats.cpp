#include <fmt/format.h>

#include <array>
#include <string>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::traces {

// TensorRT-LLM's iteration statistics, as its metrics endpoint and its get_stats() give them: JSON lines or an array,
// an object an iteration:
//
//   {"iter":7,"iterLatencyMS":20.0,"numActiveRequests":8,"numQueuedRequests":0,"attentionDpRank":0,
//    "inflightBatchingStats":{"numCtxTokens":0,"numGenRequests":8},
//    "specDecodingStats":{"numDraftTokens":24,"numAcceptedTokens":12,"numRequestsWithDraftTokens":8,
//                         "acceptanceLength":2.5,"iterLatencyMS":3.1,"draftOverhead":0.155}}
//
// Each is a window: every request with drafts verifies once, so rounds are numRequestsWithDraftTokens; acceptanceLength
// is 1 + accepted / rounds and is only held against them. Where specDecodingStats is null or drafted nothing, the
// iteration is left out, and so it is where attentionDpRank is not 0: other ranks repeat its counts. An iteration puts
// out one token for each of numGenRequests and its accepted drafts, in iterLatencyMS. max_draft_len and
// max_total_draft_tokens (or maxDraftLen, maxTotalDraftTokens) tell a tree, with more drafts in total than its length.

namespace {

constexpr std::string_view iterations_format = "tensorrt-llm iterations";
constexpr std::string_view stats_key = "specDecodingStats";

void read_shape(const CountedFields& fields, ServingCounts& counts) {
  using Names = std::array<std::string_view, 2>;
  const auto length = fields.count(Names{"max_draft_len", "maxDraftLen"});
  const auto total = fields.count(Names{"max_total_draft_tokens", "maxTotalDraftTokens"});
  if (length) counts.gamma = static_cast<std::int64_t>(*length);
  if (!length || !total) return;
  counts.shape = *total > *length ? DraftShape::tree : DraftShape::chain;
  if (*total > *length) counts.verified_per_round = static_cast<std::int64_t>(*total) + 1;
}

void read_window(const CountedFields& fields, ServingCounts& counts) {
  EngineWindow& window = counts.window.emplace();
  window.running = fields.count("numActiveRequests");
  window.waiting = fields.count("numQueuedRequests");
  const auto milliseconds = fields.measure("iterLatencyMS");
  const auto batch = fields.part_if_any("inflightBatchingStats");
  if (!milliseconds || *milliseconds == 0 || !batch) return;
  const double seconds = *milliseconds / 1000;
  if (const auto tokens = batch->count("numCtxTokens")) window.prompt_tokens_per_second = *tokens / seconds;
  if (const auto generating = batch->count("numGenRequests")) {
    window.generation_tokens_per_second = (*generating + *counts.accepted) / seconds;
  }
}

/// The counts of an iteration; false where it drafted nothing.
bool read_counts(const CountedFields& stats, ServingCounts& counts) {
  counts.drafted = stats.required("numDraftTokens");
  counts.accepted = stats.required("numAcceptedTokens");
  counts.rounds = stats.required("numRequestsWithDraftTokens");
  if (*counts.rounds == 0) {
    if (*counts.drafted > 0) stats.refuse("numRequestsWithDraftTokens", "0", "at least 1, as tokens were drafted");
    return false;
  }
  require_counted_length(stats, "acceptanceLength", stats.measure("acceptanceLength"), counts);
  return *counts.drafted > 0;
}

void read_iterations(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ServingCounts counts = no_counts("tensorrt-llm", iterations_format, CountUnit::window);
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    counts.file = path;
    std::int64_t iterations = 0;
    bool any = false;
    for (; file.next(); ++iterations) {
      const CountedFields fields(file);
      const auto rank = fields.count("attentionDpRank");
      const auto stats = fields.part(stats_key);
      if (!stats || (rank && *rank != 0)) continue;
      clear_counts(counts);
      counts.line = file.line();
      if (!read_counts(*stats, counts)) continue;
      read_shape(fields, counts);
      read_window(fields, counts);
      any = true;
      sink.take(counts);
    }
    if (any) continue;
    throw FileError(path, std::string(stats_key),
                    fmt::format("null or without drafts in all of {} iterations", iterations),
                    "given where an iteration drafted");
  }
}

}  // namespace

CountsFormat tensorrt_llm_iterations_format() {
  return {iterations_format, [](const FileHead& head) { return mentions_key(head.json(), stats_key); },
          read_iterations};
}

}  // namespace specdec::traces
