#include "traces/serving/counted_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view a_count = "a count, an integer >= 0";

}  // namespace

std::optional<double> count_of(dom::element value) {
  double number = 0;
  if (value.get(number) != simdjson::SUCCESS) return std::nullopt;
  if (!(number >= 0 && number <= largest_count) || number != std::floor(number)) return std::nullopt;
  return number;
}

std::optional<std::size_t> index_of_key(std::string_view key) {
  const auto index = number_in<std::size_t>(key);
  return index && *index <= CountedFields::longest_draft ? index : std::nullopt;
}

std::string shown(double number) {
  return number == std::floor(number) && std::abs(number) <= largest_count ? fmt::format("{:.0f}", number)
                                                                           : fmt::format("{:.6g}", number);
}

std::optional<dom::element> CountedFields::value(std::string_view key) const { return find_member(object_, key); }

CountedFields::CountedFields(const JsonLines& file)
    : CountedFields(file, read_object(file, file.document(), {"document"})) {}

std::optional<CountedFields> CountedFields::part(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  return CountedFields(*file_, read_object(*file_, *found, {name(key)}), name(key) + ".");
}

CountedFields CountedFields::at(std::string_view key, std::string_view expected) const {
  auto found = part(key);
  if (!found) refuse(key, "missing", std::string(expected));
  return *found;
}

std::optional<CountedFields> CountedFields::part_if_any(std::string_view key) const {
  const auto found = value(key);
  return found && found->is_object() ? part(key) : std::nullopt;
}

std::int64_t CountedFields::each(std::string_view key, const std::function<void(const CountedFields&)>& take) const {
  const auto found = value(key);
  if (!found || !found->is_array()) return 0;
  std::int64_t count = 0;
  const dom::array list = *found;
  for (const dom::element entry : list) {
    const std::string place = fmt::format("{}[{}]", name(key), count++);
    if (entry.is_object()) take(CountedFields(*file_, dom::object(entry), place + "."));
  }
  return count;
}

std::optional<double> CountedFields::count(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto result = count_of(*found);
  if (!result) file_->refuse(name(key), *found, std::string(a_count));
  return result;
}

std::optional<double> CountedFields::count(std::span<const std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (key.empty()) continue;
    if (const auto result = count(key)) return result;
  }
  return std::nullopt;
}

double CountedFields::required(std::string_view key, std::string_view expected) const {
  const auto result = count(key);
  if (!result) refuse(key, "missing", std::string(expected));
  return *result;
}

std::optional<double> CountedFields::number(std::string_view key, bool infinite, std::string_view expected) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const auto result = number_of(*found);
  if (result && std::isnan(*result)) return std::nullopt;
  const double largest = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::max();
  if (!result || !(*result >= 0 && *result <= largest)) file_->refuse(name(key), *found, std::string(expected));
  return result;
}

std::optional<double> CountedFields::measure_or_nan(std::string_view key) const {
  const auto found = value(key);
  const auto number = found ? number_of(*found) : std::nullopt;
  return number && std::isnan(*number) ? number : this->number(key, false, "a number above 0");
}

std::optional<double> CountedFields::measure(std::string_view key) const { return number(key, false, "a number >= 0"); }

double CountedFields::above_zero(std::string_view key) const {
  const auto value = measure(key);
  if (value && *value > 0) return *value;
  refuse(key, value ? "0" : "missing", "a number above 0");
}
std::optional<double> CountedFields::rate(std::string_view key) const { return number(key, true, "a number >= 0"); }

std::optional<std::string_view> CountedFields::text(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  std::string_view result;
  if (found->get(result) != simdjson::SUCCESS) file_->refuse(name(key), *found, "a string");
  return result;
}

std::optional<std::string_view> CountedFields::text_if_any(std::string_view key) const {
  std::string_view result;
  const auto found = value(key);
  return found && found->get(result) == simdjson::SUCCESS ? std::optional(result) : std::nullopt;
}

bool CountedFields::list(std::string_view key, std::vector<double>& counts) const {
  counts.clear();
  const auto found = key.empty() ? std::nullopt : value(key);
  if (!found) return false;
  const std::string whole_name = name(key);
  JsonField field{whole_name};
  for (const simdjson::dom::element entry : read_array(*file_, *found, field)) {
    ++field.index;
    const auto count = count_of(entry);
    if (!count) file_->refuse(field.text(), entry, "a count, an integer >= 0");
    counts.push_back(*count);
  }
  return true;
}

bool CountedFields::histogram(std::string_view key, std::vector<double>& counts) const {
  counts.clear();
  const auto found = value(key);
  if (!found) return false;
  histogram(*found, key, {}, counts);
  return true;
}

void CountedFields::histogram(dom::element value, std::string_view key, std::string_view part,
                              std::vector<double>& counts) const {
  counts.clear();
  const auto field = [&](std::string_view index) {
    return part.empty() ? fmt::format("{}[{}]", name(key), printable(index))
                        : fmt::format("{}[{}][{}]", name(key), printable(part), printable(index));
  };
  if (value.is_array()) {
    const dom::array list = value;
    for (const dom::element entry : list) {
      const auto result = count_of(entry);
      const std::size_t index = counts.size();
      if (!result) file_->refuse(field(fmt::format("{}", index)), entry, std::string(a_count));
      if (index > longest_draft) {
        refuse(key, "longer than its rounds can be", fmt::format("at most {} long", longest_draft + 1));
      }
      counts.push_back(*result);
    }
    return;
  }
  if (!value.is_object()) file_->refuse(name(key), value, "a list of counts, or an object of counts by number");
  const dom::object members = value;
  for (const auto [text, entry] : members) {
    const auto index = index_of_key(text);
    if (!index) {
      refuse(key, fmt::format("an object with {}", printable(text)),
             fmt::format("an object whose keys are integers in [0, {}]", longest_draft));
    }
    const auto result = count_of(entry);
    if (!result) file_->refuse(field(text), entry, std::string(a_count));
    if (counts.size() <= *index) counts.resize(*index + 1, 0);
    counts[*index] += *result;
  }
}

void require_counted_length(const CountedFields& fields, std::string_view key, std::optional<double> length,
                            const ServingCounts& counts) {
  if (!length || !counts.accepted || counts.rounds.value_or(0) == 0) return;
  const double expected = 1 + *counts.accepted / *counts.rounds;
  if (std::abs(*length - expected) > std::max(two_decimals, 1e-6 * expected))
    fields.refuse(key, shown(*length),
                  fmt::format("{} = 1 + {} / {}", shown(expected), shown(*counts.accepted), shown(*counts.rounds)));
}

ServingCounts no_counts(std::string_view engine, std::string_view format, CountUnit unit,
                        const std::filesystem::path& file) {
  ServingCounts counts;
  counts.file = file;
  counts.engine = engine;
  counts.format = format;
  counts.unit = unit;
  return counts;
}

void clear_counts(ServingCounts& counts) {
  ServingCounts cleared = no_counts(counts.engine, counts.format, counts.unit, counts.file);
  cleared.id = std::move(counts.id);
  cleared.labels = std::move(counts.labels);
  counts = std::move(cleared);
}

void add_round(std::vector<double>& rounds_by_accepted, std::size_t accepted) {
  rounds_by_accepted.resize(std::max(rounds_by_accepted.size(), accepted + 1));
  rounds_by_accepted[accepted] += 1;
}

void add_totals(ServingCounts& counts) {
  if (!counts.rounds) counts.rounds = sum_of(counts.rounds_by_accepted);
  if (!counts.accepted) counts.accepted = weighted_sum(counts.rounds_by_accepted);
}

void each_document(JsonLines& file, ServingCounts& counts, std::string_view expected,
                   const std::function<void(const CountedFields&)>& take) {
  bool any = false;
  for (; file.next(); any = true) {
    clear_counts(counts);
    counts.line = file.line();
    take(CountedFields(file));
  }
  if (!any) throw FileError(file.path(), "file", "empty", std::string(expected));
}

void set_label(ServingCounts& counts, std::string_view name, std::optional<std::string_view> value) {
  const auto found = std::find_if(counts.labels.begin(), counts.labels.end(),
                                  [&](const CountLabel& label) { return label.name == name; });
  if (found == counts.labels.end()) {
    if (value) counts.labels.push_back({std::string(name), std::string(*value)});
  } else if (value) {
    found->value.assign(*value);
  } else {
    counts.labels.erase(found);
  }
}

bool first_document_passes(const FileHead& head, bool (*test)(std::string_view text)) {
  const std::string_view text = head.json();
  if (text.empty()) return false;
  if (test(text)) return true;
  std::error_code error;
  const bool is_complete = head.size <= static_cast<std::int64_t>(head.bytes.size());
  if (is_complete || text.find('\n') != std::string_view::npos || !std::filesystem::is_regular_file(head.path, error)) {
    return false;
  }
  const MappedFile file(head.path);
  const auto bytes = file.bytes().first(std::min(file.bytes().size(), JsonLines::longest_document));
  const std::string_view content = text_of(bytes);
  return test(content.substr(0, content.find('\n', head.bytes.size())));
}

}  // namespace specdec::traces
