#include "render/table.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

#include "render/text.hpp"

namespace specdec::render {
namespace {

/// At most so many bytes of UTF-8, no character in parts.
std::string beginning_of(const std::string& text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

/// Cut in the middle, since names of one family differ at their ends.
std::string cell_text(const std::string& cell, std::size_t widest) {
  std::string text = visible(cell);
  if (widest == 0 || text.size() <= widest) return text;
  const std::string begin = beginning_of(text, (widest - 2) / 2);
  std::size_t end = text.size() - (widest - 3 - begin.size());
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  return begin + "..." + text.substr(end);
}

struct TextColumn {
  Align align;
  std::size_t width;
  /// The heading first.
  std::vector<std::string> cells;
};

std::string line(const std::vector<TextColumn>& columns, std::size_t row) {
  std::string text;
  for (const TextColumn& column : columns) {
    const char* const form = column.align == Align::left ? "{}{:<{}}" : "{}{:>{}}";
    text += fmt::format(fmt::runtime(form), &column == &columns.front() ? "" : "  ", column.cells[row], column.width);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

}  // namespace

Table shortened(Table table, std::size_t rows) {
  if (table.rows.size() <= rows) return table;
  std::vector<std::size_t> places(table.rows.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  // Of each row from the nearest marked one.
  std::vector<std::size_t> distance(places.size(), places.size());
  const auto pass = [&](std::size_t place, std::size_t& from_marked) {
    from_marked = table.rows[place].is_marked ? 0 : from_marked + 1;
    distance[place] = table.rows[place].distance.value_or(std::min(distance[place], from_marked));
  };
  std::size_t before = places.size(), behind = places.size();
  for (std::size_t i = 0; i < places.size(); ++i) pass(i, before);
  for (std::size_t i = places.size(); i-- > 0;) pass(i, behind);
  // A marked row before one as near. The page's compiler has no std::ranges::sort.
  const auto order = [&](std::size_t place) { return std::pair(distance[place], !table.rows[place].is_marked); };
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return order(a) < order(b); });
  places.resize(rows);
  std::sort(places.begin(), places.end());
  std::vector<Table::Row> kept;
  for (const std::size_t place : places) kept.push_back(std::move(table.rows[place]));
  table.rows = std::move(kept);
  return table;
}

std::string text_of(const Table& table) {
  std::vector<TextColumn> columns;
  for (std::size_t c = 0; c < table.headings.size(); ++c) {
    const auto& [heading, look] = table.headings[c];
    if (look.page_only) continue;
    TextColumn column{look.align, 0, {cell_text(heading, 0)}};
    for (const Table::Row& row : table.rows) column.cells.push_back(cell_text(row.cells[c], look.widest));
    for (const std::string& cell : column.cells) column.width = std::max(column.width, cell.size());
    columns.push_back(std::move(column));
  }
  std::string text = line(columns, 0);
  for (std::size_t r = 0; r < table.rows.size(); ++r) text += line(columns, r + 1);
  return text;
}

}  // namespace specdec::render
