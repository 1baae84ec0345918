#include "traces/serving/iteration_stats.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view iterations_format = "tensorrt-llm iterations";
constexpr std::string_view stats_key = "specDecodingStats";
/// Half a unit of the last digit of a length that was rounded to two.

std::optional<double> count_of_either(const CountedFields& fields, std::string_view first, std::string_view second) {
  const std::array names = {first, second};
  return fields.count(names);
}

void read_shape(const CountedFields& fields, ServingCounts& counts) {
  const auto length = count_of_either(fields, "max_draft_len", "maxDraftLen");
  const auto total = count_of_either(fields, "max_total_draft_tokens", "maxTotalDraftTokens");
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
  const auto batching = fields.value("inflightBatchingStats");
  if (!milliseconds || *milliseconds == 0 || !batching || !batching->is_object()) return;
  const dom::object members = *batching;
  const CountedFields batch(fields.file(), members, "inflightBatchingStats.");
  const double seconds = *milliseconds / 1000;
  if (const auto tokens = batch.count("numCtxTokens")) window.prompt_tokens_per_second = *tokens / seconds;
  if (const auto generating = batch.count("numGenRequests")) {
    window.generation_tokens_per_second = (*generating + *counts.accepted) / seconds;
  }
}

/// The counts of an iteration; false where it drafted nothing.
bool read_counts(const CountedFields& stats, ServingCounts& counts) {
  counts.drafted = stats.count("numDraftTokens");
  counts.accepted = stats.count("numAcceptedTokens");
  counts.rounds = stats.count("numRequestsWithDraftTokens");
  if (!counts.drafted) stats.refuse("numDraftTokens", "missing", "given");
  if (!counts.accepted) stats.refuse("numAcceptedTokens", "missing", "given");
  if (!counts.rounds) stats.refuse("numRequestsWithDraftTokens", "missing", "given");
  if (*counts.accepted > *counts.drafted) {
    stats.refuse("numAcceptedTokens", shown(*counts.accepted),
                 fmt::format("at most {}, as numDraftTokens is", shown(*counts.drafted)));
  }
  if (*counts.rounds == 0) {
    if (*counts.drafted > 0) stats.refuse("numRequestsWithDraftTokens", "0", "at least 1, as tokens were drafted");
    return false;
  }
  const auto length = stats.measure("acceptanceLength");
  const double expected = 1 + *counts.accepted / *counts.rounds;
  if (length && std::abs(*length - expected) > two_decimals) {
    stats.refuse("acceptanceLength", shown(*length),
                 fmt::format("{} = 1 + {} / {}", shown(expected), shown(*counts.accepted), shown(*counts.rounds)));
  }
  return *counts.drafted > 0;
}

void read_iterations(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ServingCounts counts;
  counts.engine = "tensorrt-llm";
  counts.format = iterations_format;
  counts.unit = CountUnit::window;
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    counts.file = path;
    std::int64_t iterations = 0;
    bool any = false;
    for (; file.next(); ++iterations) {
      const CountedFields fields(file, read_object(file, file.document(), {"document"}));
      const auto rank = fields.count("attentionDpRank");
      const auto stats = fields.value(stats_key);
      if (!stats || (rank && *rank != 0)) continue;
      clear_counts(counts);
      counts.line = file.line();
      if (!read_counts(CountedFields(file, read_object(file, *stats, {stats_key}), "specDecodingStats."), counts)) {
        continue;
      }
      read_shape(fields, counts);
      read_window(fields, counts);
      any = true;
      sink.take(counts);
    }
    if (any) continue;
    throw FileError(path, FileError::whole_file(), std::string(stats_key),
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
