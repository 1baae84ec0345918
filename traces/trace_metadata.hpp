#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::traces {

/// The rule by which an engine accepts a drafted token. Metadata key "acceptance".
enum class AcceptanceRule {
  rejection,     ///< Algorithm 1: the draft samples from q, accepted with probability min(1, p/q)
  greedy_draft,  ///< the draft proposes argmax q (or a copy), accepted with probability p of it
  greedy,        ///< temperature 0: accepted iff argmax p = argmax q
};
constexpr AcceptanceRule last_enumerator(AcceptanceRule) { return AcceptanceRule::greedy; }

/// The distribution that the stored log-probabilities belong to. Metadata key "logprob_space".
enum class LogprobSpace {
  raw,        ///< the model's own, at temperature 1 and with nothing cut off
  processed,  ///< the one that was sampled from, after temperature, top-k, top-p and min-p
  unknown,
};

/// The origin of the text. Metadata key "path".
enum class TextSource {
  target,  ///< sampled from the target
  other,   ///< from anywhere else: exact replay is not defined
  unknown,
};

/// The word used in the metadata, for instance "greedy-draft".
std::string_view name_of(AcceptanceRule rule);
std::string_view name_of(LogprobSpace space);
std::string_view name_of(TextSource source);

/// The metadata of a trace; docs/reference/formats.md lists the keys. Fields that are not stated stay empty.
struct TraceMetadata {
  std::optional<std::int64_t> vocab_size;
  /// The sampling temperature of the text; >= 0.
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  /// True if the temperature was applied after the cuts, as llama.cpp does, and not before them.
  std::optional<bool> temperature_last;
  std::string target_model;
  std::string draft_model;
  std::string engine;
  std::string draft_kind;
  std::optional<AcceptanceRule> acceptance;
  LogprobSpace logprob_space = LogprobSpace::unknown;
  TextSource path = TextSource::unknown;
  /// Names of the task ids 0, 1, ...
  std::vector<std::string> task_names;
  /// Every other key, as in the file.
  std::map<std::string, std::string> other;

  friend bool operator==(const TraceMetadata&, const TraceMetadata&) = default;
};

/// The name of a task id: its number if the recording names none, empty for -1.
std::string task_name(const std::vector<std::string>& task_names, std::int32_t id);

/// The strings of a safetensors `__metadata__`, with format and version.
std::map<std::string, std::string> to_strings(const TraceMetadata& metadata);

/// The reverse. The key "format" may be absent or one of those that `save_file` users write ("pt", "np", ...).
/// @throws FileError naming the key if a value is not one of those that docs/reference/formats.md lists for it
TraceMetadata metadata_from_strings(const std::map<std::string, std::string>& strings,
                                    const std::filesystem::path& path);

}  // namespace specdec::traces
