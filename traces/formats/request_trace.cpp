#include "traces/formats/request_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/csv_records.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/open_trace.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;
namespace fs = std::filesystem;

constexpr std::string_view readable =
    "TIMESTAMP, ContextTokens and GeneratedTokens (Azure), timestamp, input_length and output_length (Mooncake), or "
    "seconds, prompt_tokens and output_tokens";
constexpr std::int64_t largest_length = std::int64_t{1} << 30;

/// A format of requests: the names of its three columns or keys.
struct RequestFormat {
  std::string_view name;
  std::array<std::string_view, 3> fields;
  /// A JSON key that is ignored.
  std::string_view ignored;
  /// Units of the first field per second; 0 for a date.
  double per_second;
};

constexpr RequestFormat azure = {"azure", {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, "", 0};
constexpr RequestFormat mooncake = {"mooncake", {"timestamp", "input_length", "output_length"}, "hash_ids", 1000};
constexpr RequestFormat request_table = {"request table", {"seconds", "prompt_tokens", "output_tokens"}, "", 1};

constexpr std::array csv_formats = {&azure, &request_table};
constexpr std::array json_formats = {&mooncake, &request_table};

/// Integer seconds and a fraction, so that differences within a day keep all digits of a date in this century.
struct DateTime {
  std::int64_t seconds = 0;
  double fraction = 0;
  bool has_offset = false;
};

/// 2023-11-16 18:17:03.9799600 or 2024-05-10T00:00:00.009930+00:00: the fraction, of up to nine digits, and the offset
/// from UTC, which may be Z, are optional.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : left_(text) {}

  std::optional<DateTime> read() {
    namespace chrono = std::chrono;
    const auto year = digits(4), month = after('-', 2), day = after('-', 2);
    if (left_.empty() || (left_.front() != ' ' && left_.front() != 'T')) return std::nullopt;
    left_.remove_prefix(1);
    const auto hour = digits(2), minute = after(':', 2), second = after(':', 2);
    if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
    const chrono::year_month_day date{chrono::year(static_cast<int>(*year)),
                                      chrono::month(static_cast<unsigned>(*month)),
                                      chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
    DateTime time;
    time.seconds =
        chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86400} + *hour * 3600 + *minute * 60 + *second;
    if (!read_fraction(time) || !read_offset(time)) return std::nullopt;
    return left_.empty() ? std::optional(time) : std::nullopt;
  }

 private:
  std::optional<std::int64_t> digits(std::size_t count) {
    const std::string_view text = left_.substr(0, count);
    if (text.size() < count || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    left_.remove_prefix(count);
    return number_in<std::int64_t>(text);
  }

  std::optional<std::int64_t> after(char mark, std::size_t count) {
    if (!left_.starts_with(mark)) return std::nullopt;
    left_.remove_prefix(1);
    return digits(count);
  }

  bool read_fraction(DateTime& time) {
    if (!left_.starts_with('.')) return true;
    left_.remove_prefix(1);
    const std::size_t count = std::min(left_.find_first_not_of("0123456789"), left_.size());
    if (count < 1 || count > 9) return false;
    time.fraction = static_cast<double>(*digits(count)) / std::pow(10.0, static_cast<double>(count));
    return true;
  }

  bool read_offset(DateTime& time) {
    time.has_offset = !left_.empty();
    if (left_ == "Z") {
      left_.remove_prefix(1);
      return true;
    }
    if (left_.empty()) return true;
    const bool west = left_.front() == '-';
    if (!west && left_.front() != '+') return false;
    left_.remove_prefix(1);
    const auto hours = digits(2), minutes = after(':', 2);
    if (!hours || !minutes || *hours > 23 || *minutes > 59) return false;
    const std::int64_t offset = *hours * 3600 + *minutes * 60;
    time.seconds -= west ? -offset : offset;
    return true;
  }

  std::string_view left_;
};

/// Requests as they are read; `Records` names lines and throws errors.
template <class Records>
class ArrivalCollector {
 public:
  ArrivalCollector(RequestTrace& trace, const Records& records) : trace_(trace), records_(records) {}

  /// @param found  the time as written in the file
  template <class Found>
  void add(std::string_view field, double seconds, const Found& found, std::int64_t prompt, std::int64_t output) {
    if (!trace_.requests.empty() && seconds < trace_.requests.back().seconds) {
      records_.refuse(std::string(field), printable(fmt::format("{}", found)),
                      fmt::format("no earlier than that of the request before it, on line {}", line_));
    }
    line_ = records_.line();
    trace_.requests.push_back({seconds, prompt, output});
  }

 private:
  RequestTrace& trace_;
  const Records& records_;
  std::int64_t line_ = 0;
};

std::string field_text(std::string_view field) { return field.empty() ? "empty" : printable(field); }

std::string expected_length() { return fmt::format("a whole number, 1 to {}", largest_length); }

/// The positions of a format's columns in a header; empty if it does not have that format.
std::optional<std::array<std::size_t, 3>> columns_of(const RequestFormat& format,
                                                     const std::vector<std::string_view>& header) {
  std::array<std::size_t, 3> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), format.fields[i]);
    if (found == header.end()) return std::nullopt;
    columns[i] = static_cast<std::size_t>(found - header.begin());
  }
  return columns;
}

class CsvRequests {
 public:
  explicit CsvRequests(const fs::path& path) : records_(path) {}

  RequestTrace read() {
    RequestTrace trace;
    trace.path = records_.path();
    if (!records_.next()) return trace;
    read_header();
    trace.format = format_->name;
    ArrivalCollector<CsvRecords> collector(trace, records_);
    while (records_.next()) {
      if (records_.fields().size() != columns_.size()) {
        records_.refuse("row", fmt::format("{} fields long", records_.fields().size()),
                        fmt::format("{} fields long, as the header is", columns_.size()));
      }
      const std::string_view time = field(0);
      const double seconds = seconds_of(time);
      collector.add(format_->fields[0], seconds, time, length(1), length(2));
    }
    return trace;
  }

 private:
  void read_header() {
    std::vector<std::string_view> header;
    for (const std::string_view name : records_.fields()) header.push_back(trimmed(name));
    for (const RequestFormat* format : csv_formats) {
      const auto columns = columns_of(*format, header);
      if (!columns) continue;
      if (header.size() > columns->size()) {
        records_.refuse("header", fmt::format("{} columns long", header.size()),
                        fmt::format("{}, {} and {} alone", format->fields[0], format->fields[1], format->fields[2]));
      }
      format_ = format;
      columns_ = *columns;
      return;
    }
    records_.refuse("header", printable(fmt::format("{}", fmt::join(header, ","))), std::string(readable));
  }

  std::string_view field(std::size_t i) const { return trimmed(records_.fields()[columns_[i]]); }

  std::int64_t length(std::size_t i) const {
    const auto value = number_in<std::int64_t>(field(i));
    if (value && 1 <= *value && *value <= largest_length) return *value;
    records_.refuse(std::string(format_->fields[i]), field_text(field(i)), expected_length());
  }

  double seconds_of(std::string_view text) {
    if (format_ == &azure) return seconds_of_date(text);
    const auto value = number_in<double>(text);
    if (!value || !(*value >= 0) || !std::isfinite(*value)) {
      records_.refuse(std::string(format_->fields[0]), field_text(text), "a number, 0 or above");
    }
    if (!first_) first_ = *value;
    return *value - *first_;
  }

  double seconds_of_date(std::string_view text) {
    const auto date = DateReader(text).read();
    if (!date) {
      records_.refuse("TIMESTAMP", field_text(text),
                      "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 "
                      "00:00:00.009930+00:00");
    }
    if (!first_date_) first_date_ = *date;
    if (date->has_offset != first_date_->has_offset) {
      records_.refuse("TIMESTAMP", date->has_offset ? "a time with an offset from UTC" : "a time without one",
                      "as in the first row");
    }
    return static_cast<double>(date->seconds - first_date_->seconds) + (date->fraction - first_date_->fraction);
  }

  CsvRecords records_;
  const RequestFormat* format_ = nullptr;
  std::array<std::size_t, 3> columns_{};
  std::optional<double> first_;
  std::optional<DateTime> first_date_;
};

class JsonRequests {
 public:
  explicit JsonRequests(const fs::path& path) : documents_(path) {}

  RequestTrace read() {
    RequestTrace trace;
    trace.path = documents_.path();
    ArrivalCollector<JsonLines> collector(trace, documents_);
    while (documents_.next()) {
      dom::object object;
      if (documents_.document().get(object) != simdjson::SUCCESS) {
        documents_.refuse("document", documents_.document(), "an object");
      }
      if (format_ == nullptr) find_format(object);
      const std::array<dom::element, 3> values = values_of(object);
      const auto time = number_of(values[0]);
      if (!values[0].is_number() || !time || !(*time >= 0) || !std::isfinite(*time)) {
        documents_.refuse(std::string(format_->fields[0]), values[0], "a number, 0 or above");
      }
      if (!first_) first_ = *time;
      collector.add(format_->fields[0], (*time - *first_) / format_->per_second, *time, length(values, 1),
                    length(values, 2));
    }
    if (format_ != nullptr) trace.format = format_->name;
    return trace;
  }

 private:
  void find_format(dom::object object) {
    for (const RequestFormat* format : json_formats) {
      const bool named = std::any_of(format->fields.begin(), format->fields.end(), [&](std::string_view name) {
        return object.at_key(name).error() == simdjson::SUCCESS;
      });
      if (named) {
        format_ = format;
        return;
      }
    }
    documents_.refuse("document", documents_.document(), std::string(readable));
  }

  std::array<dom::element, 3> values_of(dom::object object) const {
    std::array<dom::element, 3> values;
    std::array<bool, 3> found{};
    for (const dom::key_value_pair pair : object) {
      const auto place = std::find(format_->fields.begin(), format_->fields.end(), pair.key);
      const auto i = static_cast<std::size_t>(place - format_->fields.begin());
      if (i == values.size()) {
        if (!format_->ignored.empty() && pair.key == format_->ignored) continue;
        documents_.refuse(fmt::format("key {}", printable(pair.key)), "there",
                          fmt::format("one of {}, {}, {}{}{}", format_->fields[0], format_->fields[1],
                                      format_->fields[2], format_->ignored.empty() ? "" : ", ", format_->ignored));
      }
      if (found[i]) documents_.refuse(std::string(pair.key), "there twice", "there once");
      found[i] = true;
      values[i] = pair.value;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!found[i]) documents_.refuse(std::string(format_->fields[i]), "missing", "there");
    }
    return values;
  }

  std::int64_t length(const std::array<dom::element, 3>& values, std::size_t i) const {
    const auto value = integer_of(values[i]);
    if (value && 1 <= *value && *value <= largest_length) return *value;
    documents_.refuse(std::string(format_->fields[i]), values[i], expected_length());
  }

  JsonLines documents_;
  const RequestFormat* format_ = nullptr;
  std::optional<double> first_;
};

}  // namespace

RequestTrace read_request_trace(const fs::path& path) {
  const KeptStreams streams;
  const FileHead head = FileHead::of(path);
  if (head.folder) throw FileError(path, FileError::whole_file(), "path", "a folder", "a file");
  if (!head.compression().empty()) head.refuse_format("a table of requests");
  RequestTrace trace = head.json().empty() ? CsvRequests(path).read() : JsonRequests(path).read();
  if (trace.requests.empty())
    throw FileError(path, FileError::whole_file(), "the number of requests", "0", "1 or more");
  return trace;
}

}  // namespace specdec::traces
