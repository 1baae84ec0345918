#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/mapped_file.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.
//
//   name,"a field, with a comma",1.5        fields, separated by a comma, a semicolon or a tab
//   "a ""quoted"" word","two
//   lines",                                 a quoted field may hold the separator, line ends and doubled quotes
//
// A byte order mark at the start, CRLF line ends and blank lines are skipped.

/// The separator of a text's first line: the one that occurs most outside quotes; a comma if there is none.
char csv_separator(std::string_view text);

/// True if a line is of numbers and empty fields, and so names no columns.
bool is_row_of_numbers(std::string_view line, char separator);

/// The records of a memory-mapped CSV file, one after the other.
class CsvRecords {
 public:
  static constexpr std::size_t longest_record = std::size_t{1} << 20U;

  /// The first record determines the separator.
  /// @throws FileError if the file cannot be mapped
  explicit CsvRecords(std::filesystem::path path);

  /// Reads the next record; false at the end of the file.
  /// @throws FileError if a quoted field does not end, continues after its closing quote, or a record is too long
  bool next();
  /// Its fields; views until the next call.
  std::span<const std::string_view> fields() const { return fields_; }
  /// The 1-based line on which it begins.
  std::int64_t line() const { return line_; }
  const std::filesystem::path& path() const { return path_; }
  /// Returns to the first record.
  void rewind();

  /// Throws a FileError at the line of the record.
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const;

 private:
  void skip_blank_lines();
  std::string_view read_field();
  std::string_view read_quoted_field();
  bool take_line_end();

  std::filesystem::path path_;
  MappedFile file_;
  std::string_view left_;
  char separator_;
  std::int64_t line_ = 0;
  std::int64_t next_line_ = 1;
  std::size_t record_begin_ = 0;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;
};

}  // namespace specdec::traces
