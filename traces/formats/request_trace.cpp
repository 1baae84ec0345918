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
#include "traces/formats/field_rows.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/open_trace.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view readable =
    "TIMESTAMP, ContextTokens and GeneratedTokens (Azure), timestamp, input_length and output_length (Mooncake), or "
    "seconds, prompt_tokens and output_tokens";
constexpr std::int64_t largest_length = std::int64_t{1} << 30;

/// A format of requests: the names of its three columns or keys.
struct RequestFormat {
  std::string_view name;
  std::array<std::string_view, 3> fields;
  /// A field that is passed over.
  std::string_view ignored;
  /// Units of the first field per second; 0 for a date.
  double per_second;
};

constexpr std::array request_formats = {
    RequestFormat{"azure", {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, "", 0},
    RequestFormat{"mooncake", {"timestamp", "input_length", "output_length"}, "hash_ids", 1000},
    RequestFormat{"request table", {"seconds", "prompt_tokens", "output_tokens"}, "", 1},
};

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

class RequestReader {
 public:
  explicit RequestReader(const FileHead& head) : rows_(head, "seconds,prompt_tokens,output_tokens") {
    if (rows_.header() == 0) return;
    find_format();
    require_known_fields();
  }

  RequestTrace read() {
    RequestTrace trace;
    std::int64_t line = 0;
    while (rows_.next()) {
      if (format_ == nullptr) find_format();
      require_known_fields();
      const std::string_view time = text(0);
      const double seconds = seconds_of(time);
      if (!trace.requests.empty() && seconds < trace.requests.back().seconds)
        refuse(0, time, fmt::format("no earlier than that of the request before it, on line {}", line));
      line = rows_.line();
      trace.requests.push_back({seconds, length(1), length(2)});
      trace.format = format_->name;
    }
    return trace;
  }

 private:
  void find_format() {
    for (const RequestFormat& format : request_formats)
      if (std::ranges::all_of(format.fields, [&](std::string_view name) { return rows_.find(name) != nullptr; }))
        format_ = &format;
    if (format_ == nullptr) rows_.refuse_names(std::string(readable));
  }

  void require_known_fields() const {
    for (const RowField& field : rows_.fields()) {
      if (std::ranges::find(format_->fields, field.name) != format_->fields.end()) continue;
      if (format_->ignored.empty() || field.name != format_->ignored)
        rows_.refuse_names(fmt::format("{}{}{}", fmt::join(format_->fields, ", "), format_->ignored.empty() ? "" : ", ",
                                       format_->ignored));
    }
  }

  std::string_view text(std::size_t i) const {
    const RowField* field = rows_.find(format_->fields[i]);
    if (field == nullptr) refuse(i, "missing", "there");
    return field->text;
  }

  [[noreturn]] void refuse(std::size_t i, std::string_view found, std::string expected) const {
    rows_.refuse(std::string(format_->fields[i]), found.empty() ? "empty" : printable(found), std::move(expected));
  }

  std::int64_t length(std::size_t i) const {
    const auto value = number_in<std::int64_t>(text(i));
    if (value && 1 <= *value && *value <= largest_length) return *value;
    refuse(i, text(i), fmt::format("a whole number, 1 to {}", largest_length));
  }

  /// Since the first request.
  double seconds_of(std::string_view time) {
    if (format_->per_second == 0) return seconds_of_date(time);
    const auto number = number_in<double>(time);
    if (!number || !(*number >= 0) || !std::isfinite(*number)) refuse(0, time, "a number, 0 or above");
    if (!first_) first_ = *number;
    return (*number - *first_) / format_->per_second;
  }

  double seconds_of_date(std::string_view time) {
    const auto date = date_of(time);
    if (!date) refuse(0, time, "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00.009930+00:00");
    if (!first_date_) first_date_ = *date;
    if (date->has_offset != first_date_->has_offset)
      refuse(0, date->has_offset ? "a time with an offset from UTC" : "a time without one", "as in the first row");
    return static_cast<double>(date->seconds - first_date_->seconds) + (date->fraction - first_date_->fraction);
  }

  FieldRows rows_;
  const RequestFormat* format_ = nullptr;
  std::optional<double> first_;
  std::optional<DateTime> first_date_;
};

}  // namespace

RequestTrace read_request_trace(const fs::path& path) {
  const KeptStreams streams;
  const FileHead head = FileHead::of(path);
  if (head.folder) throw FileError(path, "path", "a folder", "a file");
  if (!head.compression().empty()) head.refuse_format("a table of requests");
  RequestTrace trace = RequestReader(head).read();
  trace.path = path;
  if (trace.requests.empty()) throw FileError(path, "the number of requests", "0", "1 or more");
  return trace;
}

}  // namespace specdec::traces
