#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of HTML. Whatever a user or a file wrote goes through `escaped`.
namespace specdec::render {

/// `text` as the content of an element or of an attribute in double quotes. What would be markup is text; control
/// characters and bytes that are no UTF-8 are written visibly.
std::string escaped(std::string_view text);

/// A document within <script type="application/json">, which none of its strings can end.
std::string script_json(const nlohmann::ordered_json& document);

/// A table with a caption, column headings, and rows whose first cells are their headings. It scrolls by itself where
/// the page is narrower.
class HtmlTable {
 public:
  struct Column {
    std::string heading;
    bool is_number = true;
  };

  HtmlTable(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}

  /// @param cells  text, one for each column
  /// @param mark   the row is what the table is about
  void add_row(std::vector<std::string> cells, bool mark = false);
  bool is_empty() const { return rows_.empty(); }
  std::string to_string() const;

 private:
  struct TableRow {
    std::vector<std::string> cells;
    bool mark = false;
  };

  std::string caption_;
  std::vector<Column> columns_;
  std::vector<TableRow> rows_;
};

}  // namespace specdec::render
