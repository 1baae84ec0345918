#include "planner/question_error.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace specdec::planner {
namespace {

bool is_part_of_option(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

/// The length of the option that the text begins with, including dashes; 0 if there is none.
std::size_t option_at(std::string_view text) {
  if (!text.starts_with("--") || text.size() < 3 || text[2] < 'a' || text[2] > 'z') return 0;
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_part_of_option) - text.begin());
}

std::string member_of(std::string_view option) {
  std::string member(option.substr(2));
  std::replace(member.begin(), member.end(), '-', '_');
  return member;
}

}  // namespace

QuestionError::QuestionError(const std::string& message)
    : std::invalid_argument(with_members(message)), with_options_(message) {
  const std::size_t length = option_at(message);
  if (length > 0) parameter_ = member_of(std::string_view(message).substr(0, length));
}

void refuse(std::string_view option, std::string_view text, std::string_view expected) {
  constexpr std::size_t longest = 60;
  const std::string shown = text.size() > longest ? fmt::format("{}...", text.substr(0, longest))
                                                  : std::string(text.empty() ? "empty" : text);
  throw QuestionError(fmt::format("{} is {}, but must be {}", option, shown, expected));
}

bool LegalRange::contains(double value) const {
  return (lo_open ? lo < value : lo <= value) && value <= hi && std::isfinite(value);
}

std::string LegalRange::to_string() const {
  return fmt::format("{}{}, {}", lo_open ? '(' : '[', lo, std::isinf(hi) ? "inf)" : fmt::format("{}]", hi));
}

std::string LegalRange::of_integers() const {
  return fmt::format("[{:.0f}, {}", lo, std::isinf(hi) ? "2^63)" : fmt::format("{:.0f}]", hi));
}

void require_in(std::string_view option, double value, const LegalRange& range) {
  if (!range.contains(value)) refuse(option, fmt::format("{}", value), "a number in " + range.to_string());
}

void require_in(std::string_view option, std::int64_t value, const LegalRange& range) {
  if (range.contains(static_cast<double>(value))) return;
  refuse(option, fmt::format("{}", value), "an integer in " + range.of_integers());
}

std::string with_members(std::string_view text) {
  std::string named;
  for (std::size_t at = 0; at < text.size();) {
    const bool may_begin = at == 0 || !is_part_of_option(text[at - 1]);
    const std::size_t length = may_begin ? option_at(text.substr(at)) : 0;
    named += length > 0 ? member_of(text.substr(at, length)) : std::string(1, text[at]);
    at += std::max<std::size_t>(length, 1);
  }
  return named;
}

}  // namespace specdec::planner
