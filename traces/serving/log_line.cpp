#include "traces/serving/log_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// Without the escape sequences ESC [ ... LETTER that colour a line.
std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !('@' <= line[i] && line[i] <= '~')) ++i;
    } else {
      text += line[i];
    }
  }
  return text;
}

/// The name of a key, without what stands between it and its value.
std::string_view name_of(std::string_view key) { return key.substr(0, key.find_last_not_of(" :=(#,") + 1); }

std::string printable_value(std::string_view text) {
  const std::string_view word = without_blanks_before(text);
  return word.empty() ? "cut off" : quoted(word.substr(0, word.find_first_of(",\r")));
}

}  // namespace

std::size_t find_text(std::string_view text, std::string_view what, std::size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* found = ::memmem(text.data() + from, text.size() - from, what.data(), what.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::optional<LeadingNumber> leading_number(std::string_view text) {
  text = without_blanks_before(text);
  LeadingNumber result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) result.value = HUGE_VAL;
  result.rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return result;
}

std::optional<double> printed_value(std::string_view line, std::string_view key, bool percent) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos || (at > 0 && !is_blank(line[at - 1]))) return std::nullopt;
  std::string_view rest = without_blanks_before(line.substr(at + key.size()));
  if (!rest.starts_with('=')) return std::nullopt;
  const auto number = leading_number(rest.substr(1));
  if (!number) return std::nullopt;
  rest = number->rest;
  if (percent) {
    if (!rest.starts_with('%')) return std::nullopt;
    rest.remove_prefix(1);
  }
  rest = without_blanks_before(rest);
  if (!rest.empty() && rest.front() != '\r' && rest.front() != '\\') return std::nullopt;
  return number->value;
}

LogLine::LogLine(const fs::path& file, std::int64_t number, std::string_view text)
    : file_(file), number_(number), text_(text) {
  if (text_.find('\x1b') == std::string_view::npos) return;
  plain_ = without_colours(text_);
  text_ = plain_;
}

void LogLine::refuse(std::string_view field, std::string found, std::string expected) const {
  throw FileError(file_, FileError::line(number_), std::string(field), std::move(found), std::move(expected));
}

std::optional<std::string_view> LogLine::after(std::string_view key) const {
  const std::size_t at = text_.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return text_.substr(at + key.size());
}

std::optional<double> LogLine::number(std::string_view key, std::string_view unit) const {
  const auto rest = after(key);
  if (!rest) return std::nullopt;
  const auto found = leading_number(*rest);
  if (!found) refuse(name_of(key), printable_value(*rest), "a number");
  if (!found->rest.starts_with(unit)) {
    refuse(name_of(key), printable_value(*rest), fmt::format("a number followed by \"{}\"", unit));
  }
  return found->value;
}

std::string LogLine::quoted(std::string_view key) const {
  const auto rest = after(key);
  if (!rest || rest->empty() || (rest->front() != '\'' && rest->front() != '"')) return {};
  const std::size_t end = rest->find(rest->front(), 1);
  return end == std::string_view::npos ? "" : printable(rest->substr(1, end - 1));
}

double LogLine::needed(std::string_view key, std::string_view unit) const {
  const auto value = number(key, unit);
  if (!value) refuse(name_of(key), "missing", "given on the line");
  return *value;
}

double LogLine::count(std::string_view key, std::string_view unit) const {
  const double value = needed(key, unit);
  require_count(name_of(key), value);
  return value;
}

void LogLine::require_count(std::string_view field, double value) const {
  if (0 <= value && value <= largest_count && std::floor(value) == value) return;
  refuse(field, fmt::format("{}", value), "a number of tokens, an integer in [0, 2^53]");
}

std::vector<double> LogLine::rates(std::string_view field, std::string_view text) const {
  std::vector<double> result;
  while (const auto next = leading_number(text)) {
    if (!(0 <= next->value && next->value <= 1)) {
      refuse(field, fmt::format("{} at position {}", next->value, result.size()), "a fraction in [0, 1]");
    }
    if (result.size() == most_logged_positions)
      refuse(field, "longer", fmt::format("of {} positions at most", most_logged_positions));
    result.push_back(next->value);
    text = without_blanks_before(next->rest);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return result;
}

void LogText::go_to(std::size_t place) {
  const std::size_t before = text_.rfind('\n', place);
  begin_ = before == std::string_view::npos ? 0 : before + 1;
  end_ = end_of_line(begin_);
}

bool LogText::go_on() {
  if (is_last_line()) return false;
  begin_ = end_ + 1;
  end_ = end_of_line(begin_);
  return true;
}

std::int64_t LogText::line_number() {
  lines_ += std::count(text_.data() + counted_, text_.data() + begin_, '\n');
  counted_ = begin_;
  return lines_ + 1;
}

std::size_t LogText::end_of_line(std::size_t begin) const {
  return std::min(find_text(text_, "\n", begin), text_.size());
}

}  // namespace specdec::traces
