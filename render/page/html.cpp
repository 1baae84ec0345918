#include "render/page/html.hpp"

#include <fmt/format.h>
#include <stdexcept>

#include "render/step_figure.hpp"

namespace specdec::render {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string script_json(const nlohmann::ordered_json& document) {
  std::string result;
  for (const char c : document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

void HtmlTable::add_row(std::vector<std::string> cells, bool mark) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(
        fmt::format("HtmlTable::add_row: cells has {} entries, but must have {}", cells.size(), columns_.size()));
  }
  rows_.push_back({std::move(cells), mark});
}

std::string HtmlTable::to_string() const {
  // Whoever scrolls by keyboard must be able to focus what scrolls, and what has focus needs a name.
  std::string html = fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n",
                                 escaped(caption_));
  html += fmt::format("<caption>{}</caption>\n<thead><tr>", escaped(caption_));
  for (const Column& column : columns_) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"n\"" : "", escaped(column.heading));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : rows_) {
    html += row.mark ? "<tr class=\"mark\">" : "<tr>";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view kind = columns_[i].is_number ? " class=\"n\"" : "";
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", kind, escaped(row.cells[i]))
                     : fmt::format("<td{}>{}</td>", kind, escaped(row.cells[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

}  // namespace specdec::render
