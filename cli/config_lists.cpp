#include "cli/config_lists.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <vector>

namespace specdec::cli {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// A list of texts: each with its quotes, and what stands behind it.
struct TextList {
  std::vector<std::string_view> texts;
  std::string_view rest;
};

/// @param text  begins behind the opening bracket
/// @return nothing for a list that holds anything but texts, or is not closed
std::optional<TextList> text_list(std::string_view text) {
  TextList list;
  while (!text.empty()) {
    const char next = text.front();
    if (next == ']') {
      list.rest = text.substr(1);
      return list;
    }
    std::size_t end = 1;
    if (next == '"' || next == '\'') {
      end = text.find(next, 1);
      if (end == std::string_view::npos) return std::nullopt;
      list.texts.push_back(text.substr(0, ++end));
    } else if (next == '#') {
      end = text.find('\n');
      if (end == std::string_view::npos) return std::nullopt;
    } else if (next != ',' && next != '\n' && blanks.find(next) == std::string_view::npos) {
      return std::nullopt;
    }
    text.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace

std::string with_lists_by_line(std::string_view toml) {
  std::string lines;
  while (!toml.empty()) {
    const std::size_t end = std::min(toml.find('\n'), toml.size());
    const std::string_view line = toml.substr(0, end);
    const std::size_t equals = line.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
    std::optional<TextList> list;
    if (value.starts_with('[') && !trimmed(line).starts_with('#')) {
      list = text_list(toml.substr(static_cast<std::size_t>(value.data() - toml.data()) + 1));
    }
    if (!list) {
      lines += fmt::format("{}\n", line);
      toml.remove_prefix(std::min(end + 1, toml.size()));
      continue;
    }
    for (const std::string_view text : list->texts)
      lines += fmt::format("{} = {}\n", trimmed(line.substr(0, equals)), text);
    toml = list->rest.substr(std::min(list->rest.find('\n'), list->rest.size()));
    if (!toml.empty()) toml.remove_prefix(1);
  }
  return lines;
}

}  // namespace specdec::cli
