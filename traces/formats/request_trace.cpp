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

/// Whether a text has digits where the form has zeros, and the form's own characters elsewhere.
bool has_form(std::string_view text, std::string_view form) {
  return std::equal(text.begin(), text.end(), form.begin(), form.end(),
                    [](char c, char of_form) { return of_form == '0' ? '0' <= c && c <= '9' : c == of_form; });
}

/// 2023-11-16 18:17:03.9799600 or 2024-05-10T00:00:00.009930+00:00: the fraction, of up to nine digits, and the offset
/// from UTC, which may be Z, are optional.
std::optional<DateTime> date_of(std::string_view text) {
  namespace chrono = std::chrono;
  constexpr std::size_t length = std::string_view("0000-00-00 00:00:00").size();
  const std::string_view main = text.substr(0, length);
  if (!has_form(main, "0000-00-00 00:00:00") && !has_form(main, "0000-00-00T00:00:00")) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits = 2) {
    return *number_in<std::int64_t>(text.substr(at, digits));
  };
  const chrono::year_month_day date{chrono::year(static_cast<int>(number(0, 4))),
                                    chrono::month(static_cast<unsigned>(number(5))),
                                    chrono::day(static_cast<unsigned>(number(8)))};
  if (!date.ok() || number(11) > 23 || number(14) > 59 || number(17) > 59) return std::nullopt;
  DateTime time;
  time.seconds = chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86400} + number(11) * 3600 +
                 number(14) * 60 + number(17);
  std::size_t end = length;
  if (text.substr(end).starts_with('.')) {
    end = std::min(text.find_first_not_of("0123456789", length + 1), text.size());
    const std::size_t digits = end - length - 1;
    if (digits < 1 || digits > 9) return std::nullopt;
    time.fraction = static_cast<double>(number(length + 1, digits)) / std::pow(10.0, static_cast<double>(digits));
  }
  const std::string_view offset = text.substr(end);
  time.has_offset = !offset.empty();
  if (offset.empty() || offset == "Z") return time;
  const bool west = has_form(offset, "-00:00");
  if ((!west && !has_form(offset, "+00:00")) || number(end + 1) > 23 || number(end + 4) > 59) return std::nullopt;
  time.seconds += (west ? 1 : -1) * (number(end + 1) * 3600 + number(end + 4) * 60);
  return time;
}

/// A field of a request, as far as it can be read.
struct RequestField {
  std::string_view text;
  std::optional<double> number;
  std::optional<std::int64_t> whole;
  /// For messages.
  std::string shown;
};
using RequestFields = std::array<RequestField, 3>;

class CsvRequests {
 public:
  explicit CsvRequests(const fs::path& path) : records_(path) {}

  const CsvRecords& records() const { return records_; }
  const RequestFormat& format() const { return *format_; }

  bool next() {
    if (format_ == nullptr) {
      if (!records_.next()) return false;
      read_header();
    }
    if (!records_.next()) return false;
    if (records_.fields().size() != columns_.size()) {
      records_.refuse("row", fmt::format("{} fields long", records_.fields().size()),
                      fmt::format("{} fields long, as the header is", columns_.size()));
    }
    return true;
  }

  RequestFields fields() const {
    RequestFields fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view text = trimmed(records_.fields()[columns_[i]]);
      fields[i] = {text, number_in<double>(text), number_in<std::int64_t>(text),
                   text.empty() ? "empty" : printable(text)};
    }
    return fields;
  }

 private:
  void read_header() {
    std::vector<std::string_view> header;
    for (const std::string_view name : records_.fields()) header.push_back(trimmed(name));
    for (const RequestFormat* format : csv_formats) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const auto found = std::find(header.begin(), header.end(), format->fields[i]);
        columns_[i] = static_cast<std::size_t>(found - header.begin());
      }
      if (std::find(columns_.begin(), columns_.end(), header.size()) != columns_.end()) continue;
      if (header.size() > columns_.size()) {
        records_.refuse("header", fmt::format("{} columns long", header.size()),
                        fmt::format("{}, {} and {} alone", format->fields[0], format->fields[1], format->fields[2]));
      }
      format_ = format;
      return;
    }
    records_.refuse("header", printable(fmt::format("{}", fmt::join(header, ","))), std::string(readable));
  }

  CsvRecords records_;
  const RequestFormat* format_ = nullptr;
  std::array<std::size_t, 3> columns_{};
};

class JsonRequests {
 public:
  explicit JsonRequests(const fs::path& path) : documents_(path) {}

  const JsonLines& records() const { return documents_; }
  const RequestFormat& format() const { return *format_; }

  bool next() {
    if (!documents_.next()) return false;
    if (documents_.document().get(object_) != simdjson::SUCCESS)
      documents_.refuse("document", documents_.document(), "an object");
    if (format_ == nullptr) find_format();
    return true;
  }

  RequestFields fields() const {
    RequestFields fields;
    for (const dom::key_value_pair pair : object_) {
      const auto place = std::find(format_->fields.begin(), format_->fields.end(), pair.key);
      const auto i = static_cast<std::size_t>(place - format_->fields.begin());
      if (i == fields.size()) {
        if (!format_->ignored.empty() && pair.key == format_->ignored) continue;
        documents_.refuse(fmt::format("key {}", printable(pair.key)), "there",
                          fmt::format("one of {}, {}, {}{}{}", format_->fields[0], format_->fields[1],
                                      format_->fields[2], format_->ignored.empty() ? "" : ", ", format_->ignored));
      }
      if (!fields[i].shown.empty()) documents_.refuse(std::string(pair.key), "there twice", "there once");
      fields[i] = {{},
                   pair.value.is_number() ? number_of(pair.value) : std::nullopt,
                   integer_of(pair.value),
                   excerpt(pair.value)};
    }
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].shown.empty()) documents_.refuse(std::string(format_->fields[i]), "missing", "there");
    return fields;
  }

 private:
  void find_format() {
    for (const RequestFormat* format : json_formats) {
      const bool named = std::any_of(format->fields.begin(), format->fields.end(), [&](std::string_view name) {
        return object_.at_key(name).error() == simdjson::SUCCESS;
      });
      if (named) {
        format_ = format;
        return;
      }
    }
    documents_.refuse("document", documents_.document(), std::string(readable));
  }

  JsonLines documents_;
  dom::object object_;
  const RequestFormat* format_ = nullptr;
};

template <class Source>
class RequestReader {
 public:
  explicit RequestReader(const fs::path& path) : source_(path) {}

  RequestTrace read() {
    RequestTrace trace;
    trace.path = source_.records().path();
    std::int64_t line = 0;
    while (source_.next()) {
      const RequestFields fields = source_.fields();
      const double seconds = seconds_of(fields[0]);
      if (!trace.requests.empty() && seconds < trace.requests.back().seconds)
        refuse(0, fields[0].shown, fmt::format("no earlier than that of the request before it, on line {}", line));
      line = source_.records().line();
      trace.requests.push_back({seconds, length(fields, 1), length(fields, 2)});
      trace.format = source_.format().name;
    }
    return trace;
  }

 private:
  [[noreturn]] void refuse(std::size_t field, std::string found, std::string expected) const {
    source_.records().refuse(std::string(source_.format().fields[field]), std::move(found), std::move(expected));
  }

  std::int64_t length(const RequestFields& fields, std::size_t i) const {
    const auto value = fields[i].whole;
    if (value && 1 <= *value && *value <= largest_length) return *value;
    refuse(i, fields[i].shown, fmt::format("a whole number, 1 to {}", largest_length));
  }

  /// Since the first request.
  double seconds_of(const RequestField& time) {
    if (source_.format().per_second == 0) return seconds_of_date(time);
    if (!time.number || !(*time.number >= 0) || !std::isfinite(*time.number))
      refuse(0, time.shown, "a number, 0 or above");
    if (!first_) first_ = *time.number;
    return (*time.number - *first_) / source_.format().per_second;
  }

  double seconds_of_date(const RequestField& time) {
    const auto date = date_of(time.text);
    if (!date) refuse(0, time.shown, "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00.009930+00:00");
    if (!first_date_) first_date_ = *date;
    if (date->has_offset != first_date_->has_offset)
      refuse(0, date->has_offset ? "a time with an offset from UTC" : "a time without one", "as in the first row");
    return static_cast<double>(date->seconds - first_date_->seconds) + (date->fraction - first_date_->fraction);
  }

  Source source_;
  std::optional<double> first_;
  std::optional<DateTime> first_date_;
};

}  // namespace

RequestTrace read_request_trace(const fs::path& path) {
  const KeptStreams streams;
  const FileHead head = FileHead::of(path);
  if (head.folder) throw FileError(path, FileError::whole_file(), "path", "a folder", "a file");
  if (!head.compression().empty()) head.refuse_format("a table of requests");
  RequestTrace trace =
      head.json().empty() ? RequestReader<CsvRequests>(path).read() : RequestReader<JsonRequests>(path).read();
  if (trace.requests.empty())
    throw FileError(path, FileError::whole_file(), "the number of requests", "0", "1 or more");
  return trace;
}

}  // namespace specdec::traces
