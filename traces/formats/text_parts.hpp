#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

/// Helpers for pieces of text in readers of text files.
namespace specdec::traces {

/// The bytes, unchanged.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The text without the UTF-8 byte order mark that Windows programs write before it.
std::string_view without_byte_order_mark(std::string_view text);

/// True if all of it is UTF-8.
bool is_utf8(std::string_view text);

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// The text without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r");

/// The text without the blanks before it.
std::string_view without_blanks_before(std::string_view text);

/// Takes what stands before a separator, or all, off the front of the text, and the separator.
std::string_view take_part(std::string_view& text, char separator = '\n');

/// The text with the letters A to Z in lower case.
std::string lower_case(std::string_view text);

/// Takes the number that the text begins with off its front; empty, and the text as it was, if there is none.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The number that the whole text represents, without blanks or a plus sign; infinity and NaN are numbers. Empty if it
/// is not a number, or lies beyond the type's range.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  const auto number = take_number<Number>(text);
  return text.empty() ? number : std::nullopt;
}

/// The double that the whole text represents, as C, Python and Prometheus write it: a plus sign may precede it, and one
/// beyond a double's range is 0 or infinite.
std::optional<double> double_in(std::string_view text);

/// For messages: the text as printable() shows it, between quotation marks.
std::string quoted(std::string_view text);

}  // namespace specdec::traces
