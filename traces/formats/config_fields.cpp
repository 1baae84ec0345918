#include "traces/formats/config_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/bare_words.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::traces {
namespace {

using nlohmann::json;

std::string value_text(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
}

std::string in_quotes(std::string_view word) { return fmt::format("\"{}\"", word); }

}  // namespace

json parse_config(std::string_view text, const std::filesystem::path& where) {
  constexpr int deepest = 64;
  constexpr std::size_t longest_mib = 64;
  const auto error = [&](std::string field, std::string found, std::string expected) {
    return FileError(where, std::move(field), std::move(found), std::move(expected));
  };
  if (text.size() >> 20U >= longest_mib)
    throw error("document", fmt::format("{} MiB long", text.size() >> 20U), fmt::format("below {} MiB", longest_mib));
  const auto once = unique_keys(
      [&](const std::string& key) { throw error(printable(key), "there twice", "there once in its object"); });
  const auto see = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) throw error("document", "nested deeper", fmt::format("nested at most {} deep", deepest));
    return once(depth, event, value);
  };
  const std::optional<std::string> rewritten = json::accept(text) ? std::nullopt : without_bare_words(text);
  try {
    json document = json::parse(rewritten ? std::string_view(*rewritten) : text, see);
    if (!document.is_object()) throw error("document", value_text(document), "a JSON object");
    return document;
  } catch (const json::parse_error& refused) {
    if (rewritten) throw error("document", "not JSON", "a JSON object");
    throw FileError(where, FileError::byte(static_cast<std::int64_t>(refused.byte)), "document",
                    "not JSON from there on", "a JSON object");
  }
}

ConfigFields::ConfigFields(std::filesystem::path path, const json& object, std::string prefix)
    : path_(std::move(path)), object_(object), prefix_(std::move(prefix)) {}

void ConfigFields::refuse(std::string_view name, std::string found, std::string expected) const {
  throw FileError(path_, prefix_ + std::string(name), std::move(found), std::move(expected));
}

bool ConfigFields::is_object(std::string_view name) const {
  const json* value = find(name);
  return value != nullptr && value->is_object();
}

bool ConfigFields::names(std::string_view name) const { return object_.contains(std::string(name)); }

std::vector<std::string> ConfigFields::keys() const {
  std::vector<std::string> result;
  for (const auto& entry : object_.items()) result.push_back(entry.key());
  return result;
}

std::int64_t ConfigFields::size(std::string_view name) const { return read_integer(name, require(name), 1); }

std::int64_t ConfigFields::size(std::string_view name, std::optional<std::int64_t> otherwise) const {
  return otherwise && !has(name) ? *otherwise : size(name);
}

std::optional<std::int64_t> ConfigFields::find_size(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return size(name);
}

std::int64_t ConfigFields::count(std::string_view name, std::int64_t otherwise) const {
  const json* value = find(name);
  return value == nullptr ? otherwise : read_integer(name, *value, 0);
}

bool ConfigFields::is_negative(std::string_view name) const {
  const json* value = find(name);
  return value != nullptr && value->is_number() && value->get<double>() < 0;
}

double ConfigFields::number(std::string_view name, const FieldRange& range) const {
  return read_number(name, require(name), range);
}

std::vector<double> ConfigFields::numbers(std::string_view name, const FieldRange& range) const {
  const json& list = require(name);
  if (!list.is_array() || list.empty()) refuse(name, value_text(list), "an array that is not empty");
  std::vector<double> result;
  for (const json& value : list)
    result.push_back(read_number(fmt::format("{}[{}]", name, result.size()), value, range));
  return result;
}

double ConfigFields::positive(std::string_view name) const {
  const json& value = require(name);
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number > 0 && std::isfinite(number))) refuse(name, value_text(value), "a positive number");
  return number;
}

double ConfigFields::positive(std::string_view name, double otherwise) const {
  return has(name) ? positive(name) : otherwise;
}

bool ConfigFields::flag(std::string_view name, bool otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse(name, value_text(*value), "true or false");
  return value->get<bool>();
}

std::string ConfigFields::word(std::string_view name) const {
  const json& value = require(name);
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse(name, value_text(value), "a string that is not empty");
  return value.get<std::string>();
}

std::string ConfigFields::word(std::string_view name, std::string_view otherwise) const {
  return has(name) ? word(name) : std::string(otherwise);
}

std::vector<std::string> ConfigFields::words(std::string_view name) const {
  std::vector<std::string> result;
  const json* list = find(name);
  if (list == nullptr) return result;
  if (!list->is_array()) refuse(name, value_text(*list), "an array of strings");
  for (const json& value : *list) {
    if (!value.is_string()) refuse(name, "holding " + value_text(value), "an array of strings");
    result.push_back(value.get<std::string>());
  }
  return result;
}

std::vector<std::int64_t> ConfigFields::counts(std::string_view name) const {
  std::vector<std::int64_t> result;
  const json* list = find(name);
  if (list == nullptr) return result;
  if (!list->is_array()) refuse(name, value_text(*list), "an array of integers");
  for (const json& value : *list) result.push_back(read_integer(name, value, 0));
  return result;
}

ConfigFields ConfigFields::object(std::string_view name) const {
  const json& value = require(name);
  if (!value.is_object()) refuse(name, value_text(value), "an object");
  return {path_, value, fmt::format("{}{}.", prefix_, name)};
}

std::vector<ConfigFields> ConfigFields::objects(std::string_view name) const {
  std::vector<ConfigFields> result;
  const json& list = require(name);
  if (!list.is_array()) refuse(name, value_text(list), "an array of objects");
  for (const json& value : list) {
    if (!value.is_object()) refuse(name, "holding " + value_text(value), "an array of objects");
    result.emplace_back(path_, value, fmt::format("{}{}[{}].", prefix_, name, result.size()));
  }
  return result;
}

void ConfigFields::require_keys(const std::vector<std::string_view>& known) const {
  for (const std::string& key : keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse("key", printable(key), fmt::format("one of {}", fmt::join(known, ", ")));
}

void ConfigFields::require_word(std::string_view name, std::string_view otherwise, std::string_view supported) const {
  const std::string found = word(name, otherwise);
  if (found != supported) refuse(name, in_quotes(found), in_quotes(supported));
}

void ConfigFields::require_flag(std::string_view name, bool supported) const {
  if (flag(name, supported) != supported) refuse(name, supported ? "false" : "true", supported ? "true" : "false");
}

void ConfigFields::require_absent(std::string_view name) const {
  if (has(name)) refuse(name, value_text(*find(name)), "absent");
}

const json* ConfigFields::find(std::string_view name) const {
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& ConfigFields::require(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) refuse(name, "missing", "present");
  return *value;
}

double ConfigFields::read_number(std::string_view name, const json& value, const FieldRange& range) const {
  const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (range.least <= number && number <= range.most) return number;
  const std::string from = range.least == FieldRange().least ? "(0" : fmt::format("[{}", range.least);
  const std::string to = range.most < FieldRange().most ? fmt::format("{:.4g}]", range.most) : "inf)";
  refuse(name, value_text(value), fmt::format("{} in {}, {}", range.what, from, to));
}

std::int64_t ConfigFields::read_integer(std::string_view name, const json& value, std::uint64_t smallest) const {
  constexpr std::uint64_t largest = std::numeric_limits<std::int32_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < smallest || value.get<std::uint64_t>() > largest) {
    refuse(name, value_text(value), fmt::format("an integer in [{}, {}]", smallest, largest));
  }
  return value.get<std::int64_t>();
}

}  // namespace specdec::traces
