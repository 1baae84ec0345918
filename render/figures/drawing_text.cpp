#include "render/figures/drawing_text.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

constexpr std::string_view narrow = "Iijl|!'.,:; ";
constexpr std::string_view slim = "frt()[]/\\-\"";
constexpr std::string_view wide = "mwMW%@=+<>&#~^_";

/// The number of bytes of the first UTF-8 character of a text that is not empty.
std::size_t bytes_of_first(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) ++bytes;
  return bytes;
}

double width_of_character(std::string_view character) {
  const char c = character.front();
  // Characters of three bytes and more are mostly as wide as high.
  if (character.size() > 1) return character.size() > 2 ? 1.0 : 0.7;
  if (narrow.find(c) != std::string_view::npos) return 0.33;
  if (slim.find(c) != std::string_view::npos) return 0.4;
  if (wide.find(c) != std::string_view::npos) return 0.9;
  return 'A' <= c && c <= 'Z' ? 0.7 : 0.62;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    characters.push_back(text.substr(0, bytes_of_first(text)));
    text.remove_prefix(characters.back().size());
  }
  return characters;
}

/// Units that are kept together if they fit on a line: words, and those on both sides of "=".
std::vector<std::string> pieces_of(std::string_view text, double ems) {
  std::vector<std::string> pieces;
  bool joins = false;
  for (const std::string_view word : split(text, ' ')) {
    if (!pieces.empty() && (joins || word == "=") &&
        width_in_ems(pieces.back()) + width_of_character(" ") + width_in_ems(word) <= ems) {
      pieces.back().append(" ").append(word);
    } else {
      pieces.emplace_back(word);
    }
    joins = word == "=";
  }
  return pieces;
}

}  // namespace

double width_in_ems(std::string_view text) {
  double width = 0;
  for (const std::string_view character : characters_of(text)) width += width_of_character(character);
  return width;
}

std::size_t character_count(std::string_view text) { return characters_of(text).size(); }

std::vector<std::string> lines_of(std::string_view text, double ems) {
  std::vector<std::string> lines;
  for (std::string& piece : pieces_of(text, ems)) {
    if (!lines.empty() && width_in_ems(lines.back()) + width_of_character(" ") + width_in_ems(piece) <= ems) {
      lines.back().append(" ").append(piece);
      continue;
    }
    lines.emplace_back();
    for (const std::string_view character : characters_of(piece)) {
      if (!lines.back().empty() && width_in_ems(lines.back()) + width_of_character(character) > ems)
        lines.emplace_back();
      lines.back() += character;
    }
  }
  return lines;
}

std::string shortened(std::string_view text, double ems) {
  if (width_in_ems(text) <= ems) return std::string(text);
  const std::vector<std::string_view> characters = characters_of(text);
  // A third for the end, which distinguishes "summaries of mail 1" from "summaries of mail 2".
  std::string begin, end;
  double left = ems - width_of_character("\u2026");
  double left_for_end = left / 3;
  for (auto character = characters.rbegin(); character != characters.rend(); ++character) {
    left_for_end -= width_of_character(*character);
    if (left_for_end < 0) break;
    left -= width_of_character(*character);
    end.insert(0, *character);
  }
  for (const std::string_view character : characters) {
    left -= width_of_character(character);
    if (left < 0) break;
    begin += character;
  }
  return begin + "\u2026" + end;
}

}  // namespace specdec::render
