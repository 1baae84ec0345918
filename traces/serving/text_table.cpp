#include "traces/serving/text_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::size_t most_columns = 512;

using Cells = std::vector<std::string>;
using Known = std::function<bool(std::string_view)>;

struct TextLine {
  std::int64_t number = 0;
  std::string text;
};

/// Box-drawing characters by the plain ones that stand for them.
std::string plain_text(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, char>, 6> plain = {
      {{"\u2502", '|'}, {"\u2503", '|'}, {"\u2551", '|'}, {"\u2500", '-'}, {"\u2501", '-'}, {"\u00a0", ' '}}};
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const auto found = std::find_if(plain.begin(), plain.end(),
                                    [&](const auto& one) { return line.substr(at).starts_with(one.first); });
    // The corners and crossings of a grid stand in its rules alone.
    const bool crossing = found == plain.end() && line.substr(at).starts_with("\xe2\x94") && line.size() - at >= 3;
    if (found != plain.end() || crossing) {
      text += crossing ? '+' : found->second;
      at += crossing ? 3 : found->first.size();
    } else {
      text += line[at++];
    }
  }
  return text;
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  text = without_byte_order_mark(text);
  for (std::int64_t number = 1; !text.empty(); ++number) {
    std::string line = plain_text(take_part(text));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    lines.push_back({number, std::move(line)});
  }
  return lines;
}

bool is_empty(const TextLine& line) { return trimmed(line.text).empty(); }

/// A line that draws: ---|:--:|, +----+, ======.
bool is_rule(const TextLine& line) {
  return line.text.find_first_not_of("|+-=: \t_") == std::string::npos &&
         line.text.find_first_of("-=") != std::string::npos;
}

Cells piped(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  if (line.ends_with('|')) line.remove_suffix(1);
  Cells cells(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cells.back() += line[++i];
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

Cells separated(std::string_view line, char separator) {
  Cells cells(1);
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && in_quotes && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"' && (in_quotes || trimmed(cells.back()).empty())) {
      in_quotes = !in_quotes;
    } else if (c == separator && !in_quotes) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

struct Entry {
  std::string name, value;
};

/// `name: value` or `name = value`; a colon within a name, as of vllm:tokens, is followed by no blank.
std::optional<Entry> entry_in(std::string_view line) {
  std::size_t at = std::string_view::npos;
  for (std::size_t i = 0; i < line.size() && at == std::string_view::npos; ++i) {
    const bool ends = i + 1 == line.size() || is_blank(line[i + 1]);
    if ((line[i] == ':' && ends) || (line[i] == '=' && ends && i > 0 && is_blank(line[i - 1]))) at = i;
  }
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view name = trimmed(line.substr(0, at));
  while (name.starts_with("- ") || name.starts_with("* ")) name = trimmed(name.substr(2));
  if (name.empty()) return std::nullopt;
  return Entry{std::string(name), std::string(trimmed(line.substr(at + 1)))};
}

class TableSearch {
 public:
  TableSearch(std::string_view text, const Known& known) : lines_(lines_of(text)), known_(known) {}

  std::vector<TextTable> tables() {
    while (at_ < lines_.size()) {
      if (is_empty(lines_[at_]) || is_rule(lines_[at_]) || !(take_piped() || take_separated() || take_summary())) ++at_;
    }
    return std::move(found_);
  }

 private:
  bool is_header(const Cells& names) const {
    if (names.size() > most_columns) return false;
    const auto known = std::count_if(names.begin(), names.end(), known_);
    return known >= 2 && 2 * static_cast<std::size_t>(known) >= names.size();
  }

  TextTable& begin_table(Cells names) {
    TextTable& table = found_.emplace_back();
    table.line = lines_[at_].number;
    table.names = std::move(names);
    return table;
  }

  /// Takes rows to the end of the text, or to an empty line.
  template <class CellsOf>
  void take_rows(TextTable& table, bool to_empty_line, CellsOf cells_of) {
    for (++at_; at_ < lines_.size(); ++at_) {
      const TextLine& line = lines_[at_];
      if (is_empty(line) && to_empty_line) return;
      if (is_empty(line) || is_rule(line)) continue;
      Cells cells = cells_of(line.text);
      if (cells != table.names) table.rows.push_back({line.number, std::move(cells)});
    }
  }

  bool is_piped_header() const {
    const std::string& line = lines_[at_].text;
    if (line.find('|') == std::string::npos) return false;
    const Cells names = piped(line);
    return names.size() <= most_columns && std::count_if(names.begin(), names.end(), known_) >= 2;
  }

  bool take_piped() {
    if (!is_piped_header()) return false;
    take_rows(begin_table(piped(lines_[at_].text)), true, piped);
    return true;
  }

  /// The separator of a header's fields; 0 if the line is none.
  char header_separator() const {
    for (const char separator : {'\t', ';', ','}) {
      const Cells names = separated(lines_[at_].text, separator);
      if (names.size() >= 2 && is_header(names)) return separator;
    }
    return 0;
  }

  bool take_separated() {
    const char separator = header_separator();
    if (separator == 0) return false;
    take_rows(begin_table(separated(lines_[at_].text, separator)), false,
              [&](const std::string& row) { return separated(row, separator); });
    return true;
  }

  /// Takes `name: value` lines up to the end or another table, as one table a summary: a rule with a title begins
  /// another, and so does a known name that comes again.
  bool take_summary() {
    const auto first = entry_in(lines_[at_].text);
    if (!first || !known_(first->name)) return false;
    std::string section_unit;
    std::set<std::string, std::less<>> taken;
    TextTable* table = nullptr;
    std::string title = title_above();
    for (; at_ < lines_.size(); ++at_) {
      const TextLine& line = lines_[at_];
      if (const std::string begun = title_in(line.text); !begun.empty()) {
        table = nullptr;
        title = begun;
        continue;
      }
      auto entry = entry_in(line.text);
      if (!entry && (is_piped_header() || header_separator() != 0)) return true;
      if (!entry) continue;
      const std::size_t unit = entry->name.find('(');
      if (entry->value.empty()) {
        section_unit = unit == std::string::npos ? "" : entry->name.substr(unit);
        continue;
      }
      if (!is_blank(line.text.front())) section_unit.clear();
      if (unit == std::string::npos && !section_unit.empty()) entry->name += " " + section_unit;
      const bool again = known_(entry->name) && !taken.insert(entry->name).second;
      if (table == nullptr || again) {
        taken = {entry->name};
        table = &begin_table({});
        table->summary = true;
        table->title = title;
        table->rows.push_back({line.number, {}});
      }
      table->names.push_back(std::move(entry->name));
      table->rows.front().cells.push_back(std::move(entry->value));
    }
    return true;
  }

  /// ===== Title =====
  static std::string title_in(std::string_view line) {
    line = trimmed(line);
    if (!line.starts_with("====") || !line.ends_with("====")) return "";
    return std::string(trimmed(line, "= "));
  }

  std::string title_above() const {
    for (std::size_t i = at_; i > 0; --i) {
      if (std::string title = title_in(lines_[i - 1].text); !title.empty()) return title;
    }
    return "";
  }

  std::vector<TextLine> lines_;
  const Known& known_;
  std::size_t at_ = 0;
  std::vector<TextTable> found_;
};

}  // namespace

std::vector<TextTable> text_tables(std::string_view text, const std::function<bool(std::string_view)>& known) {
  return TableSearch(text, known).tables();
}

}  // namespace specdec::traces
