#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// A table as people paste it: Markdown, a grid of `|` and dashes, fields between commas, semicolons or tabs, or a
/// summary of `name: value` lines, which is a table of one row.
struct TextTable {
  struct Row {
    std::int64_t line = 0;
    /// As many as there are names, or the row does not fit the header.
    std::vector<std::string> cells;
  };

  /// 1-based line of the header; of a summary, its first.
  std::int64_t line = 0;
  std::vector<std::string> names;
  std::vector<Row> rows;
  /// Of `name: value` lines.
  bool summary = false;
  /// The text of the rule above a summary ("Serving Benchmark Result"); empty if it has none.
  std::string title;
};

/// The tables of a text, in order. Text around them is passed over, but a line that stands among rows is a row.
/// @param known  whether a heading is a column's that the reader knows: a header has two of them at least
std::vector<TextTable> text_tables(std::string_view text, const std::function<bool(std::string_view)>& known);

}  // namespace specdec::traces
