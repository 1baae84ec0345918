#include "cli/option_file.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

constexpr std::string_view blank_characters = " \t\r";

/// Takes the text of a file of options apart, from its front.
class OptionText {
 public:
  OptionText(const std::string& file, std::string_view left) : file_(file), left_(left) {}

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

  FileOption option() {
    FileOption option{{}, {}, line_};
    option.name = left_.starts_with('"') || left_.starts_with('\'') ? quoted() : word("=\n#");
    if (option.name.empty()) refuse_here("NAME = VALUE");
    skip(false);
    if (takes("=")) {
      skip(false);
      option.values = values();
    } else {
      option.values = {{"true"}};
    }
    return option;
  }

  /// The words of a header up to the bracket that closes it.
  std::string header() { return word("]\n"); }

  [[noreturn]] void refuse_here(std::string_view expected) const {
    const std::string_view rest = left_.substr(0, std::min<std::size_t>(left_.find('\n'), 40));
    throw UsageError(fmt::format("{}:{}: {} stands where there must be {}", file_, line_,
                                 rest.empty() ? "nothing" : fmt::format("'{}'", rest), expected));
  }

 private:
  std::vector<std::vector<std::string>> values() {
    if (!takes("[")) return {{scalar("\n#")}};
    std::vector<std::vector<std::string>> all;
    for_each_entry([&] { all.push_back(takes("[") ? texts() : std::vector{scalar(",]\n#")}); });
    return all;
  }

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

  std::string quoted() {
    const char quote = left_.front();
    left_.remove_prefix(1);
    std::string text;
    while (!left_.empty() && left_.front() != '\n') {
      if (takes({&quote, 1})) return text;
      const bool is_escaped = quote == '"' && (left_.starts_with("\\\"") || left_.starts_with("\\\\"));
      if (is_escaped) left_.remove_prefix(1);
      text += left_.front();
      left_.remove_prefix(1);
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

}  // namespace

std::vector<FileSection> option_sections(const std::string& file, std::string_view toml) {
  OptionText text(file, toml);
  std::vector<FileSection> sections;
  while (!text.at_end()) {
    const std::int64_t line = text.line();
    if (text.takes("[")) {
      const bool is_one_of_several = text.takes("[");
      const std::string name = text.header();
      if (!text.takes(is_one_of_several ? "]]" : "]")) text.refuse_here("the end of the section's name");
      sections.push_back({name == "default" ? "" : name, {}, line, is_one_of_several});
    } else {
      if (sections.empty()) sections.push_back({"", {}, line});
      sections.back().options.push_back(text.option());
    }
    text.end_line();
  }
  return sections;
}

}  // namespace specdec::cli
