#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Tables of answers, built once and printed as text and as HTML.
namespace specdec::render {

enum class Align { left, right };

/// How a column is shown.
struct ColumnLook {
  Align align = Align::right;
  /// False if this table lacks the column.
  bool shown = true;
  /// The heading on a page, where there is room for more words; empty: the heading with a capital letter.
  std::string title = {};
  /// True if the column is shown on pages alone.
  bool page_only = false;
  /// In text, longer cells are cut to this many bytes and end in "..."; 0: none is.
  std::size_t widest = 0;
};

/// A column of a table over rows of this type.
template <class Row>
struct Column {
  using Cell = std::function<std::string(const Row&)>;

  Column(std::string text, Cell of_row) : Column(std::move(text), {}, std::move(of_row)) {}
  Column(std::string text, ColumnLook shown_as, Cell of_row)
      : heading(std::move(text)), look(std::move(shown_as)), cell(std::move(of_row)) {}

  std::string heading;
  ColumnLook look;
  Cell cell;
};

/// Headings and cells as a reader sees them.
struct Table {
  struct Heading {
    std::string text;
    ColumnLook look;
  };
  struct Row {
    /// One for each heading.
    std::vector<std::string> cells;
    /// True for what the table is about.
    bool is_marked = false;
    /// Rows from a marked one, for what it is compared with: a shortened table leaves out the farthest. Else counted.
    std::optional<std::size_t> distance = {};
  };

  /// On a page.
  std::string caption;
  std::vector<Heading> headings;
  std::vector<Row> rows;
};

/// @param rows       a container
/// @param is_marked  tells the rows that the table is about; none if empty
template <class Rows>
Table make_table(const Rows& rows, const std::vector<Column<typename Rows::value_type>>& columns,
                 std::string caption = {},
                 const std::function<bool(const typename Rows::value_type&)>& is_marked = {}) {
  Table table{std::move(caption), {}, {}};
  for (const auto& column : columns)
    if (column.look.shown) table.headings.push_back({column.heading, column.look});
  for (const auto& row : rows) {
    Table::Row& made = table.rows.emplace_back();
    for (const auto& column : columns)
      if (column.look.shown) made.cells.push_back(column.cell(row));
    made.is_marked = is_marked && is_marked(row);
  }
  return table;
}

/// The kept rows, and those that stand nearest to marked ones, or the first ones where none is marked.
/// @param rows  at most so many
Table shortened(Table table, std::size_t rows);

/// Columns under their headings, two blanks apart. Control characters are written as \xNN.
std::string text_of(const Table& table);

}  // namespace specdec::render
