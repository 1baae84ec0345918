#include "cli/values.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <thread>

namespace specdec::cli {
namespace {

template <class Number>
std::optional<Number> read_whole(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// "1e9", "2.5e6": what is an integer that a double holds exactly.
std::optional<std::int64_t> read_exponential(std::string_view text) {
  constexpr double largest = 9007199254740992;  // 2^53
  const auto value = read_whole<double>(text);
  if (!value || !(std::abs(*value) <= largest) || std::trunc(*value) != *value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// The number that somebody means by "70%", "0,7", "4k", or 70 for a share.
std::optional<double> meant(std::string_view text, const LegalRange& range) {
  const std::string_view but_last = text.substr(0, text.empty() ? 0 : text.size() - 1);
  const bool is_percent = text.ends_with('%'), is_thousands = text.ends_with('k');
  const std::size_t comma = text.find(',');
  std::optional<double> value = read_whole<double>(is_percent || is_thousands ? but_last : text);
  if (comma != std::string_view::npos && text.size() - comma != 4) {
    std::string with_point(text);
    with_point[comma] = '.';
    value = read_whole<double>(with_point);
  }
  if (value && is_thousands) *value *= 1000;
  constexpr double least_percent = 5;
  if (value && (is_percent || (range.hi <= 1 && *value >= least_percent))) *value /= 100;
  return value && range.contains(*value) ? value : std::nullopt;
}

}  // namespace

double parse_number(std::string_view option, std::string_view text, const LegalRange& range) {
  const auto value = read_whole<double>(text);
  if (!value || !range.contains(*value)) {
    const auto likely = meant(text, range);
    refuse(option, text, "a number in " + range.to_string() + (likely ? fmt::format(": {:g}", *likely) : ""));
  }
  if (std::fpclassify(*value) == FP_SUBNORMAL)
    refuse(option, text,
           fmt::format("a number in {} of 2.3e-308 or more{}", range.to_string(), range.contains(0) ? ", or 0" : ""));
  return *value;
}

std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t lo, std::int64_t hi) {
  auto value = read_whole<std::int64_t>(text);
  if (!value && text.find_first_of("eE") != std::string_view::npos) value = read_exponential(text);
  if (value && lo <= *value && *value <= hi) return *value;
  const bool is_open = hi == std::numeric_limits<std::int64_t>::max();
  refuse(option, text, fmt::format("an integer in [{}, {}", lo, is_open ? "2^63)" : fmt::format("{}]", hi)));
}

std::vector<double> parse_numbers(std::string_view option, std::string_view list, const LegalRange& range) {
  std::vector<double> values;
  for (const std::string_view part : split(list, ',')) values.push_back(parse_number(option, part, range));
  return values;
}

std::vector<std::int64_t> rising_integers(std::string_view option, std::string_view list, std::int64_t lo,
                                          std::int64_t hi) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : split(list, ','))
    values.push_back(parse_integer(option, part, values.empty() ? lo : values.back() + 1, hi));
  return values;
}

std::vector<std::string> listed(std::string_view option, const std::optional<std::string>& list) {
  std::vector<std::string> parts;
  if (!list) return parts;
  for (const std::string_view part : split(*list, ',')) {
    if (part.empty() || std::find(parts.begin(), parts.end(), part) != parts.end())
      refuse(option, *list, "a list of different entries separated by commas");
    parts.emplace_back(part);
  }
  return parts;
}

std::int64_t default_threads() { return std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64); }

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_=+:,./@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (!line.empty()) line += ' ';
    if (is_plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace specdec::cli
