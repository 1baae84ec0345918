#include "traces/formats/text_parts.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>

#include "traces/formats/printable.hpp"

namespace specdec::traces {
namespace {

/// The value of a number that a double cannot hold: 0 if it is too small, else infinite.
double beyond_double(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t exponent = text.find_first_of("eE");
  const bool small = exponent != std::string_view::npos ? text.substr(exponent + 1).starts_with('-')
                                                        : text.starts_with("0") || text.starts_with(".");
  if (small) return 0;
  return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return text;
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string_view without_blanks_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

std::string_view take_part(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::optional<double> double_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc::result_out_of_range ? beyond_double(text) : value;
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", printable(text)); }

}  // namespace specdec::traces
