#include "traces/formats/csv_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {

char csv_separator(std::string_view text) {
  constexpr std::array separators = {',', ';', '\t'};
  std::array<std::int64_t, separators.size()> counts{};
  bool quoted = false;
  for (const char c : text.substr(0, CsvRecords::longest_record)) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    for (std::size_t i = 0; i < separators.size(); ++i) counts[i] += c == separators[i] ? 1 : 0;
  }
  return separators[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin())];
}

CsvRecords::CsvRecords(std::filesystem::path path)
    : path_(std::move(path)),
      file_(path_),
      left_(without_byte_order_mark(text_of(file_.bytes()))),
      separator_(csv_separator(left_)) {}

bool is_row_of_numbers(std::string_view line, char separator) {
  bool any = false;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    const std::string_view field = trimmed(line.substr(at, end - at));
    if (!field.empty() && !number_in<double>(field)) return false;
    any = any || !field.empty();
    at = end + 1;
  }
  return any;
}

void CsvRecords::rewind() {
  left_ = without_byte_order_mark(text_of(file_.bytes()));
  next_line_ = 1;
}

void CsvRecords::refuse(std::string field, std::string found, std::string expected) const {
  throw FileError(path_, FileError::line(line_), std::move(field), std::move(found), std::move(expected));
}

bool CsvRecords::next() {
  fields_.clear();
  unquoted_.clear();
  skip_blank_lines();
  line_ = next_line_;
  if (left_.empty()) return false;
  record_begin_ = left_.size();
  do {
    fields_.push_back(read_field());
  } while (!take_line_end());
  return true;
}

void CsvRecords::skip_blank_lines() {
  while (!left_.empty()) {
    const std::size_t length = left_.starts_with("\r\n") ? 2 : left_.starts_with('\n') ? 1 : 0;
    if (length == 0) return;
    left_.remove_prefix(length);
    ++next_line_;
  }
}

std::string_view CsvRecords::read_field() {
  if (left_.starts_with('"')) return read_quoted_field();
  const std::string_view searched = left_.substr(0, longest_record);
  const auto end =
      std::find_if(searched.begin(), searched.end(), [&](char c) { return c == separator_ || c == '\n' || c == '\r'; });
  const std::string_view field = left_.substr(0, static_cast<std::size_t>(end - searched.begin()));
  left_.remove_prefix(field.size());
  return field;
}

std::string_view CsvRecords::read_quoted_field() {
  left_.remove_prefix(1);
  std::string& field = unquoted_.emplace_back();
  while (true) {
    const std::size_t length = left_.substr(0, longest_record).find('"');
    if (length == std::string_view::npos) refuse("quoted field", "without an end", "closed by a quotation mark");
    next_line_ += std::count(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(length), '\n');
    field += left_.substr(0, length);
    left_.remove_prefix(length + 1);
    if (!left_.starts_with('"')) return field;
    field += '"';
    left_.remove_prefix(1);
  }
}

/// Reads what follows a field: true at the end of the record, false for a separator.
bool CsvRecords::take_line_end() {
  if (record_begin_ - left_.size() >= longest_record) {
    refuse("record", "longer than that", fmt::format("at most {} bytes long", longest_record));
  }
  if (left_.empty()) return true;
  if (left_.front() == separator_) {
    left_.remove_prefix(1);
    return false;
  }
  if (left_.front() == '\r') left_.remove_prefix(1);
  if (!left_.starts_with('\n')) {
    if (left_.empty()) return true;
    refuse("field", fmt::format("followed by {}", printable(left_, 10)),
           fmt::format("followed by '{}' or the end of the line", printable({&separator_, 1})));
  }
  left_.remove_prefix(1);
  ++next_line_;
  return true;
}

}  // namespace specdec::traces
