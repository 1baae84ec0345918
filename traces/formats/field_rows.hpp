#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/csv_records.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/open_trace.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// A named field of a row; views until the next row.
struct RowField {
  std::string_view name;
  /// Of CSV without blanks around it. Of JSON a string's characters, else the value as JSON; see excerpt().
  std::string_view text;
  /// Set where JSON has a list.
  std::optional<simdjson::dom::array> list = {};
};

/// The rows of a table: CSV whose first line names the columns, or JSON objects, where null stands for no field.
class FieldRows {
 public:
  /// @param columns  an example of a first line, for messages
  /// Reads the header of CSV, whose names are then those of fields().
  /// @throws FileError if the file cannot be mapped, or its header is none
  FieldRows(const FileHead& head, std::string_view columns);

  /// Reads the next row; false at the end.
  /// @throws FileError if it is no row of the table
  bool next();
  std::span<const RowField> fields() const { return fields_; }
  const RowField* find(std::string_view name) const;
  /// 1-based.
  std::int64_t line() const { return csv_ ? csv_->line() : json_->line(); }
  /// The line with the names of the columns; 0 where each row names its own.
  std::int64_t header() const { return header_; }

  /// Throws a FileError at the line of the row.
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const;
  /// Refuses the names of the row's fields, where they stand.
  [[noreturn]] void refuse_names(std::string expected) const;

 private:
  void take_header();
  bool next_record();
  bool next_object();

  std::string_view columns_;
  std::optional<CsvRecords> csv_;
  std::optional<JsonLines> json_;
  std::int64_t header_ = 0;
  std::vector<std::string> names_;
  /// Of values that are no strings.
  std::vector<std::string> texts_;
  std::vector<RowField> fields_;
};

}  // namespace specdec::traces
