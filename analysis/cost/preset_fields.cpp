#include "analysis/cost/preset_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::cost {
namespace {

using nlohmann::json;
using traces::FileError;

std::string preset_value_text(const json& value) {
  return traces::printable(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

std::string row_of(std::string_view key, std::size_t row) { return fmt::format("{}[{}]", key, row); }

}  // namespace

json preset_document(std::string_view text, const std::filesystem::path& path, int deepest) {
  const auto refuse = [&](std::string field, std::string found, std::string expected) {
    throw FileError(path, FileError::whole_file(), std::move(field), std::move(found), std::move(expected));
  };
  const auto once = traces::unique_keys(
      [&](const std::string& key) { refuse(traces::printable(key), "there twice", "there once in its object"); });
  const auto see = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) refuse("document", "nested deeper", fmt::format("nested at most {} deep", deepest));
    return once(depth, event, value);
  };
  try {
    json document = json::parse(text, see);
    if (!document.is_object()) refuse("document", preset_value_text(document), "an object");
    return document;
  } catch (const json::parse_error& error) {
    throw FileError(path, FileError::byte(static_cast<std::int64_t>(error.byte)), "document", "not JSON from there on",
                    "a JSON object");
  } catch (const json::out_of_range&) {
    throw FileError(path, FileError::whole_file(), "document", "holding a number beyond the range of double",
                    "JSON with numbers in range");
  }
}

PresetFields::PresetFields(std::filesystem::path path, const json& object, std::string place)
    : path_(std::move(path)), object_(object), place_(std::move(place)) {}

void PresetFields::refuse(std::string_view key, std::string found, std::string expected) const {
  throw FileError(path_, FileError::whole_file(), place_ + std::string(key), std::move(found), std::move(expected));
}

void PresetFields::refuse_value(std::string_view key, std::string expected) const {
  refuse(key, preset_value_text(value(key)), std::move(expected));
}

void PresetFields::require_keys(const std::vector<std::string_view>& known) const {
  for (const std::string& key : keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse("key", traces::printable(key), fmt::format("one of {}", fmt::join(known, ", ")));
}

bool PresetFields::has(std::string_view key) const { return object_.contains(std::string(key)); }

bool PresetFields::is_object(std::string_view key) const { return value(key).is_object(); }

std::vector<std::string> PresetFields::keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : object_.items()) keys.push_back(entry.key());
  return keys;
}

PresetFields PresetFields::object(std::string_view key, std::string expected) const {
  const json& found = value(key);
  if (!found.is_object() || found.empty()) refuse_value(key, std::move(expected));
  return {path_, found, fmt::format("{}{}.", place_, key)};
}

std::vector<PresetFields> PresetFields::objects(std::string_view key) const {
  std::vector<PresetFields> objects;
  for (const json& one : array(key)) {
    const std::string row = row_of(key, objects.size());
    if (!one.is_object()) refuse(row, preset_value_text(one), "an object");
    objects.emplace_back(path_, one, place_ + row + '.');
  }
  return objects;
}

std::string PresetFields::text(std::string_view key) const { return text_of(key, value(key)); }

std::string PresetFields::text_if_any(std::string_view key) const { return has(key) ? text(key) : ""; }

std::vector<std::string> PresetFields::texts(std::string_view key) const {
  std::vector<std::string> texts;
  for (const json& text : array(key)) texts.push_back(text_of(row_of(key, texts.size()), text));
  return texts;
}

double PresetFields::number(std::string_view key, const FieldRange& range) const {
  return number_of(key, value(key), range);
}

double PresetFields::whole_number(std::string_view key, const FieldRange& range) const {
  const double read = number(key, range);
  if (read != std::floor(read)) refuse_value(key, "a whole number");
  return read;
}

std::vector<double> PresetFields::numbers(std::string_view key, const FieldRange& range) const {
  std::vector<double> numbers;
  for (const json& number : array(key)) numbers.push_back(number_of(row_of(key, numbers.size()), number, range));
  if (numbers.empty()) refuse_value(key, "an array that is not empty");
  return numbers;
}

const json& PresetFields::value(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) refuse(key, "missing", "there");
  return *found;
}

const json& PresetFields::array(std::string_view key) const {
  if (!value(key).is_array()) refuse_value(key, "an array");
  return value(key);
}

std::string PresetFields::text_of(std::string_view key, const json& value) const {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse(key, preset_value_text(value), "a string that is not empty");
  return value.get<std::string>();
}

double PresetFields::number_of(std::string_view key, const json& value, const FieldRange& range) const {
  const double read = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (range.least <= read && read <= range.most) return read;
  const std::string from = range.least == core::least_positive ? "(0" : fmt::format("[{}", range.least);
  const std::string to = range.most < core::largest_double ? fmt::format("{:.4g}]", range.most) : "inf)";
  refuse(key, preset_value_text(value), fmt::format("{} in {}, {}", range.what, from, to));
}

}  // namespace specdec::cost
