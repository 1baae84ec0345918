#include "traces/trace_metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "traces/acceptance_rules.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

using nlohmann::json;

constexpr std::string_view trace_format_name = "specdec-trace";
constexpr std::string_view trace_version = "1";

/// Extracts the known keys from the strings of one file; every error names the file and the key.
class MetadataStrings {
 public:
  MetadataStrings(const std::map<std::string, std::string>& strings, const std::filesystem::path& path)
      : strings_(strings), path_(path) {}

  std::string text(const char* key) { return take(key).value_or(""); }

  template <class Number>
  std::optional<Number> number(const char* key, Number lowest, Number highest) {
    const std::optional<std::string> value = take(key);
    if (!value) return std::nullopt;
    const auto number = number_in<Number>(*value);
    if (number && lowest <= *number && *number <= highest) return number;
    constexpr std::string_view kind = std::is_integral_v<Number> ? "an integer" : "a number";
    refuse(key, *value, fmt::format("{} in [{}, {}]", kind, lowest, highest));
  }

  std::optional<double> share_above_0(const char* key) {
    const std::optional<std::string> value = take(key);
    if (!value) return std::nullopt;
    const auto number = number_in<double>(*value);
    if (number && 0 < *number && *number <= 1) return number;
    refuse(key, *value, "a number in (0, 1]");
  }

  std::optional<bool> truth(const char* key) {
    const std::optional<std::string> value = take(key);
    if (!value) return std::nullopt;
    if (*value != "true" && *value != "false") refuse(key, *value, "true or false");
    return *value == "true";
  }

  template <class Enum, std::size_t n>
  std::optional<Enum> word(const char* key, const std::array<Enum, n>& words) {
    const std::optional<std::string> value = take(key);
    if (!value) return std::nullopt;
    std::string expected;
    for (const Enum word : words) {
      if (*value == name_of(word)) return word;
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", name_of(word));
    }
    refuse(key, *value, "one of " + expected);
  }

  std::vector<std::string> list(const char* key) {
    const std::optional<std::string> value = take(key);
    if (!value) return {};
    const json list = json::parse(*value, nullptr, false);
    std::vector<std::string> names;
    if (!list.is_array()) refuse(key, *value, "a JSON array of strings");
    for (const json& name : list) {
      if (!name.is_string()) refuse(key, *value, "a JSON array of strings");
      names.push_back(name.get<std::string>());
    }
    return names;
  }

  /// `save_file` of the frameworks sets "format" to the framework's name.
  void require_version_1() {
    const std::string format = text("format");
    constexpr std::array<std::string_view, 7> others = {"", "pt", "np", "tf", "jax", "flax", "mlx"};
    if (format != trace_format_name && std::find(others.begin(), others.end(), format) == others.end()) {
      refuse("format", format, std::string(trace_format_name));
    }
    const std::optional<std::string> version = take("version");
    if (version && *version != trace_version) refuse("version", *version, std::string(trace_version));
  }

  std::map<std::string, std::string> rest() && { return std::move(strings_); }

 private:
  std::optional<std::string> take(const char* key) {
    auto node = strings_.extract(key);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  [[noreturn]] void refuse(const char* key, const std::string& value, std::string expected) const {
    std::string found = json(value).dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
    throw FileError(path_, fmt::format("metadata {}", key), std::move(found), std::move(expected));
  }

  std::map<std::string, std::string> strings_;
  const std::filesystem::path& path_;
};

}  // namespace

std::string_view name_of(LogprobSpace space) {
  constexpr std::array<std::string_view, 3> names = {"raw", "processed", "unknown"};
  return names.at(static_cast<std::size_t>(space));
}

std::string_view name_of(TextSource source) {
  constexpr std::array<std::string_view, 3> names = {"target", "other", "unknown"};
  return names.at(static_cast<std::size_t>(source));
}

std::string task_name(const std::vector<std::string>& task_names, std::int32_t id) {
  if (id < 0) return "";
  const auto at = static_cast<std::size_t>(id);
  return at < task_names.size() ? task_names[at] : fmt::format("{}", id);
}

std::map<std::string, std::string> to_strings(const TraceMetadata& metadata) {
  std::map<std::string, std::string> strings = metadata.other;
  strings["format"] = trace_format_name;
  strings["version"] = trace_version;
  if (metadata.vocab_size) strings["vocab_size"] = fmt::format("{}", *metadata.vocab_size);
  if (metadata.temperature) strings["temperature"] = fmt::format("{}", *metadata.temperature);
  if (metadata.top_k) strings["top_k"] = fmt::format("{}", *metadata.top_k);
  if (metadata.top_p) strings["top_p"] = fmt::format("{}", *metadata.top_p);
  if (metadata.min_p) strings["min_p"] = fmt::format("{}", *metadata.min_p);
  if (metadata.temperature_last) strings["temperature_last"] = *metadata.temperature_last ? "true" : "false";
  if (!metadata.target_model.empty()) strings["p.model"] = metadata.target_model;
  if (!metadata.draft_model.empty()) strings["q.model"] = metadata.draft_model;
  if (!metadata.engine.empty()) strings["engine"] = metadata.engine;
  if (!metadata.draft_kind.empty()) strings["draft_kind"] = metadata.draft_kind;
  if (metadata.acceptance) strings["acceptance"] = name_of(*metadata.acceptance);
  strings["logprob_space"] = name_of(metadata.logprob_space);
  if (metadata.path != TextSource::unknown) strings["path"] = name_of(metadata.path);
  if (!metadata.task_names.empty()) strings["tasks"] = json(metadata.task_names).dump();
  return strings;
}

TraceMetadata metadata_from_strings(const std::map<std::string, std::string>& strings,
                                    const std::filesystem::path& path) {
  constexpr std::int64_t many = std::numeric_limits<std::int32_t>::max();
  MetadataStrings from(strings, path);
  from.require_version_1();
  TraceMetadata metadata;
  metadata.vocab_size = from.number<std::int64_t>("vocab_size", 1, many);
  metadata.temperature = from.number<double>("temperature", 0, 1e6);
  metadata.top_k = from.number<std::int64_t>("top_k", 0, many);
  metadata.top_p = from.share_above_0("top_p");
  metadata.min_p = from.number<double>("min_p", 0, 1);
  metadata.temperature_last = from.truth("temperature_last");
  metadata.target_model = from.text("p.model");
  metadata.draft_model = from.text("q.model");
  metadata.engine = from.text("engine");
  metadata.draft_kind = from.text("draft_kind");
  using Space = LogprobSpace;
  using Source = TextSource;
  metadata.acceptance = from.word("acceptance", acceptance_rules);
  metadata.logprob_space =
      from.word("logprob_space", std::array{Space::raw, Space::processed, Space::unknown}).value_or(Space::unknown);
  metadata.path =
      from.word("path", std::array{Source::target, Source::other, Source::unknown}).value_or(Source::unknown);
  metadata.task_names = from.list("tasks");
  metadata.other = std::move(from).rest();
  return metadata;
}

}  // namespace specdec::traces
