#include "cli/sweep_file.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

constexpr std::string_view blank_characters = " \t\r";

/// Takes the text of a sweep's file apart, from its front.
class SweepText {
 public:
  SweepText(const std::string& file, std::string_view left) : file_(file), left_(left) {}

  bool at_end() {
    skip(true);
    return left_.empty();
  }
  std::int64_t line() const { return line_; }

  /// True if the text goes on with this, which is then taken.
  bool takes(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }

  /// The rest of the line behind blanks must be empty or a comment.
  void end_line() {
    skip(false);
    if (!left_.empty() && left_.front() != '\n') refuse_here("the end of the line");
  }

  /// "name" of `name = value`, with or without quotes.
  std::string key() {
    std::string name = left_.starts_with('"') || left_.starts_with('\'') ? quoted() : word("= \t\r\n#");
    skip(false);
    if (name.empty() || !takes("=")) refuse_here("NAME = VALUE");
    skip(false);
    return name;
  }

  /// The words of a header up to the bracket that closes it.
  std::string header() { return word("]\n"); }

  std::vector<std::vector<std::string>> values() {
    if (!takes("[")) return {{scalar("\n#")}};
    std::vector<std::vector<std::string>> all;
    for_each_entry([&] { all.push_back(takes("[") ? texts() : std::vector{scalar(",]\n#")}); });
    return all;
  }

  [[noreturn]] void refuse_here(std::string_view expected) const {
    const std::string_view rest = left_.substr(0, std::min<std::size_t>(left_.find('\n'), 40));
    throw UsageError(fmt::format("{}:{}: {} stands where there must be {}", file_, line_,
                                 rest.empty() ? "nothing" : fmt::format("'{}'", rest), expected));
  }

 private:
  /// Passes over blanks and comments, and over line ends where `lines` says so.
  void skip(bool lines) {
    while (!left_.empty()) {
      if (left_.front() == '#' || (lines && left_.front() == ';')) {
        left_.remove_prefix(std::min(left_.find('\n'), left_.size()));
      } else if (lines && left_.front() == '\n') {
        ++line_;
        left_.remove_prefix(1);
      } else if (blank_characters.find(left_.front()) != std::string_view::npos) {
        left_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  std::string word(std::string_view ends) {
    std::string_view taken = left_.substr(0, left_.find_first_of(ends));
    left_.remove_prefix(taken.size());
    const std::size_t last = taken.find_last_not_of(blank_characters);
    return std::string(taken.substr(0, last == std::string_view::npos ? 0 : last + 1));
  }

  /// '...' as it stands, "..." with \" and \\.
  std::string quoted() {
    const char quote = left_.front();
    left_.remove_prefix(1);
    std::string text;
    while (!left_.empty() && left_.front() != '\n') {
      const char next = left_.front();
      left_.remove_prefix(1);
      if (next == quote) return text;
      if (quote == '"' && next == '\\') {
        if (left_.empty() || (left_.front() != '"' && left_.front() != '\\'))
          refuse_here("\\\" or \\\\; a text in '...' is taken as it stands");
        text += left_.front();
        left_.remove_prefix(1);
      } else {
        text += next;
      }
    }
    refuse_here(fmt::format("the {} that ends the text", quote));
  }

  std::string scalar(std::string_view ends) {
    if (left_.starts_with('"') || left_.starts_with('\'')) return quoted();
    std::string text = word(ends);
    if (text.empty() || text.find_first_of("[]\"'{}") != std::string::npos) refuse_here("a value");
    return text;
  }

  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for_each_entry([&] { all.push_back(scalar(",]\n#")); });
    return all;
  }

  /// Visits the entries of a list behind its bracket, up to the one that closes it.
  template <class TakeEntry>
  void for_each_entry(const TakeEntry& take_entry) {
    bool is_first = true;
    for (;; is_first = false) {
      skip(true);
      if (takes("]")) {
        if (is_first) refuse_here("at least one value");
        return;
      }
      take_entry();
      skip(true);
      if (!takes(",") && !left_.starts_with(']')) refuse_here("',' or ']'");
    }
  }

  const std::string& file_;
  std::string_view left_;
  std::int64_t line_ = 1;
};

void begin_section(const std::string& file, SweepText& text, std::vector<SweepSection>& sections) {
  const bool is_one_of_several = text.takes("[");
  SweepSection section{text.header(), {}, text.line()};
  if (!text.takes(is_one_of_several ? "]]" : "]")) text.refuse_here("the end of the section's name");
  for (const SweepSection& other : sections) {
    if (other.command == section.command && is_one_of_several) continue;
    const std::string_view remedy =
        other.command == section.command ? "sections of one command are written [[plan]]" : "a sweep is of one command";
    throw UsageError(fmt::format("{}:{}: [{}] follows [{}] in line {}, but {}", file, section.line, section.command,
                                 other.command, other.line, remedy));
  }
  sections.push_back(std::move(section));
}

void take_option(const std::string& file, SweepText& text, std::vector<SweepAxis>& axes) {
  SweepAxis axis{{}, {}, text.line()};
  axis.name = text.key();
  axis.values = text.values();
  const auto known = std::find_if(axes.begin(), axes.end(), [&](const SweepAxis& a) { return a.name == axis.name; });
  if (known == axes.end()) {
    axes.push_back(std::move(axis));
    return;
  }
  // As in a configuration: several values of one option, one below the other.
  const bool are_values = known == std::prev(axes.end()) && known->values.size() == 1 && axis.values.size() == 1;
  if (!are_values) {
    throw UsageError(fmt::format("{}:{}: {} is given in line {} already: several values stand in a list", file,
                                 axis.line, axis.name, known->line));
  }
  known->values[0].insert(known->values[0].end(), axis.values[0].begin(), axis.values[0].end());
}

}  // namespace

std::vector<SweepSection> sweep_sections(const std::string& file, std::string_view toml) {
  SweepText text(file, toml);
  std::vector<SweepSection> sections;
  while (!text.at_end()) {
    if (text.takes("[")) {
      begin_section(file, text, sections);
    } else if (sections.empty()) {
      text.refuse_here("[plan] or [capacity], the command whose options follow");
    } else {
      take_option(file, text, sections.back().axes);
    }
    text.end_line();
  }
  if (sections.empty()) throw UsageError(fmt::format("{}: has no section, but must have [plan] or [capacity]", file));
  return sections;
}

}  // namespace specdec::cli
