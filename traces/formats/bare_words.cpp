#include "traces/formats/bare_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace specdec::traces {
namespace {

bool is_word(char c) {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

/// The replacement for a bare word that JSON does not know, or "".
std::string replacement_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> names = {{{"NaN", "\"NaN\""},
                                                                                   {"nan", "\"NaN\""},
                                                                                   {"-nan", "\"NaN\""},
                                                                                   {"Infinity", "\"Infinity\""},
                                                                                   {"inf", "\"Infinity\""},
                                                                                   {"-Infinity", "\"-Infinity\""},
                                                                                   {"-inf", "\"-Infinity\""},
                                                                                   {"-NaN", "\"NaN\""}}};
  for (const auto& [name, replacement] : names) {
    if (word == name) return std::string(replacement);
  }
  const bool digits = word.find_first_not_of("-+.eE0123456789") == std::string_view::npos;
  if (!digits || word.size() < 5) return "";
  const double value = std::strtod(std::string(word).c_str(), nullptr);
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  // An integer beyond 64 bits is still a number.
  constexpr std::size_t shortest_long_integer = 19;
  const bool integer = word.find_first_of(".eE") == std::string_view::npos;
  return integer && word.size() >= shortest_long_integer ? std::string(word) + "e0" : "";
}

}  // namespace

std::size_t end_of_string(std::string_view text, std::size_t i) {
  while ((i = text.find('"', i)) != std::string_view::npos) {
    std::size_t first = i;
    while (first > 0 && text[first - 1] == '\\') --first;
    if ((i - first) % 2 == 0) return i;
    ++i;
  }
  return i;
}

std::optional<std::string> without_bare_words(std::string_view text) {
  std::string rewritten;
  std::size_t copied = 0;
  bool changed = false;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = std::min(end_of_string(text, i + 1), text.size() - 1) + 1;
    } else if (is_word(text[i])) {
      const std::size_t begin = i;
      while (i < text.size() && is_word(text[i])) ++i;
      const std::string replacement = replacement_of(text.substr(begin, i - begin));
      if (replacement.empty()) continue;
      rewritten.append(text, copied, begin - copied).append(replacement);
      copied = i;
      changed = true;
    } else {
      ++i;
    }
  }
  if (!changed) return std::nullopt;
  rewritten.append(text, copied);
  return rewritten;
}

}  // namespace specdec::traces
