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
/// @return empty for a list that holds anything but texts, or is not closed
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

std::string_view without_quotes(std::string_view name) {
  const bool is_quoted =
      name.size() > 1 && name.front() == name.back() && (name.front() == '"' || name.front() == '\'');
  return is_quoted ? name.substr(1, name.size() - 2) : name;
}

/// The key that a line names; empty for a comment, an empty line and the continuation of a list.
/// @param section  the one that the line stands in; changed by a line that begins another
std::optional<ConfigKey> key_of(std::string_view line, std::int64_t number, std::string& section) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#' || line.front() == ';') return std::nullopt;
  if (line.front() == '[' && line.back() == ']') {
    const bool is_double = line.size() > 4 && line.starts_with("[[") && line.ends_with("]]");
    const std::size_t brackets = is_double ? 2 : 1;
    section = line.substr(brackets, line.size() - 2 * brackets);
    if (section == "default") section.clear();
    return section.empty() ? std::nullopt : std::optional(ConfigKey{section, number, true});
  }
  const std::string_view name = without_quotes(trimmed(line.substr(0, line.find_first_of("=#"))));
  return ConfigKey{section.empty() ? std::string(name) : fmt::format("{}.{}", section, name), number};
}

}  // namespace

ConfigText config_text(std::string_view toml) {
  ConfigText config;
  std::string section;
  bool in_list = false;
  for (std::int64_t number = 1; !toml.empty();) {
    const std::size_t end = std::min(toml.find('\n'), toml.size());
    const std::string_view line = toml.substr(0, end);
    const std::size_t equals = line.find('=');
    const std::string_view value = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
    const bool begins_list = value.starts_with('[') && !trimmed(line).starts_with('#');
    if (!in_list) {
      if (auto key = key_of(line, number, section)) config.keys.push_back(*std::move(key));
    }
    std::optional<TextList> list;
    if (begins_list) list = text_list(toml.substr(static_cast<std::size_t>(value.data() - toml.data()) + 1));
    if (!list) {
      const std::string_view last = trimmed(in_list ? line : value.substr(0, value.find('#')));
      in_list = (in_list || (begins_list && last.size() > 1)) && !last.ends_with(']');
      config.lines += fmt::format("{}\n", line);
      toml.remove_prefix(std::min(end + 1, toml.size()));
      ++number;
      continue;
    }
    for (const std::string_view text : list->texts)
      config.lines += fmt::format("{} = {}\n", trimmed(line.substr(0, equals)), text);
    const std::string_view rest = list->rest.substr(std::min(list->rest.find('\n'), list->rest.size()));
    const std::string_view read = toml.substr(0, toml.size() - rest.size());
    number += 1 + std::count(read.begin(), read.end(), '\n');
    toml = rest;
    if (!toml.empty()) toml.remove_prefix(1);
  }
  return config;
}

}  // namespace specdec::cli
