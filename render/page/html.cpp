#include "render/page/html.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace specdec::render {

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

std::string paragraphs(const std::vector<std::string>& words) {
  std::string html;
  for (const std::string& paragraph : words) html += fmt::format("<p>{}</p>\n", escaped(paragraph));
  return html;
}

std::string preformatted(std::string_view text) {
  std::string html = "<pre><code>";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    html += escaped(text.substr(at, end - at)) + '\n';
    at = end + 1;
  }
  return html + "</code></pre>\n";
}

namespace {

std::string_view class_of(const Table::Heading& heading) {
  return heading.look.align == Align::right ? " class=\"n\"" : "";
}

std::string html_of(const Table::Row& row, const std::vector<Table::Heading>& headings) {
  std::string html = row.is_marked ? "<tr class=\"mark\">" : "<tr>";
  for (std::size_t c = 0; c < headings.size(); ++c) {
    html += fmt::format(fmt::runtime(c == 0 ? "<th scope=\"row\"{}>{}</th>" : "<td{}>{}</td>"), class_of(headings[c]),
                        escaped(row.cells[c]));
  }
  return html + "</tr>\n";
}

}  // namespace

std::string html_of(const Table& table) {
  if (table.rows.empty()) return "";
  // Whoever scrolls by keyboard must be able to focus what scrolls, and what has focus needs a name.
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table>\n<caption>{0}</caption>\n"
      "<thead><tr>",
      escaped(table.caption));
  for (const Table::Heading& heading : table.headings) {
    const std::string& title = heading.look.title;
    html += fmt::format("<th scope=\"col\"{}>{}</th>", class_of(heading),
                        escaped(title.empty() ? capitalised(heading.text) : title));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Table::Row& row : table.rows) html += html_of(row, table.headings);
  return html + "</tbody>\n</table>\n</div>\n";
}

}  // namespace specdec::render
