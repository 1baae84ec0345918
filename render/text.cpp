#include "render/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace specdec::render {
namespace {

std::size_t page_columns = 100;

}  // namespace

std::size_t text_width() { return page_columns; }

void set_text_width(std::size_t columns) {
  constexpr std::size_t narrowest = 40;
  page_columns = std::max(narrowest, columns);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string rate_above_rounding(double rate) {
  constexpr double rounding = 1e-12;
  return fmt::format("{:.3g}", rate < rounding ? 0.0 : rate);
}

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

std::string fixed(const std::optional<double>& value, int decimals) { return value ? fixed(*value, decimals) : "-"; }

std::string listed_ranges(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(last == first ? fmt::format("{}", numbers[first])
                                   : fmt::format("{} to {}", numbers[first], numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string factor_text(double speedup) {
  return speedup < 100 ? fmt::format("{:.2f}x", speedup) : fmt::format("{:.4g}x", speedup);
}

std::string factor_below(double speedup, double bound) {
  int decimals = 2;
  while (decimals < 6 && speedup < bound &&
         fmt::format("{:.{}f}", speedup, decimals) == fmt::format("{:.{}f}", bound, decimals)) {
    ++decimals;
  }
  return decimals == 2 ? factor_text(speedup) : fmt::format("{:.{}f}x", speedup, decimals);
}

std::string in_column(double value) {
  const bool shows = value == 0 || (std::abs(value) >= 0.01 && std::abs(value) < 1e6);
  return shows ? fmt::format("{:.3f}", value) : brief(value);
}

std::string whole_or_brief(double count) {
  return count == std::round(count) ? fmt::format("{:.0f}", count) : brief(count, 3);
}

std::string from_to(double first, double last) {
  return first == last ? whole_or_brief(first) : fmt::format("{} to {}", whole_or_brief(first), whole_or_brief(last));
}

std::string milliseconds(double seconds) { return brief(milliseconds_per_second * seconds); }

std::string with_interval(const estimate::Estimate& estimate, int decimals) {
  const auto fixed = [decimals](double value) { return fmt::format("{:.{}f}", value, decimals); };
  if (!estimate.ci95) return fixed(estimate.value);
  const auto [lo, hi] = *estimate.ci95;
  const double half = (hi - lo) / 2;
  const double last_decimal = std::pow(10.0, -decimals);
  if (std::abs(estimate.value - lo - half) <= std::max(half / 10, last_decimal))
    return fmt::format("{} +-{}", fixed(estimate.value), fixed(half));
  return fmt::format("{} [{}, {}]", fixed(estimate.value), fixed(lo), fixed(hi));
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > text_width()) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return lines;
}

namespace {

/// As JSON, but without digits that arithmetic adds to typed ones.
std::string assumed_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const nlohmann::ordered_json& item : value) items.push_back(assumed_text(item));
    return fmt::format("[{}]", fmt::join(items, ","));
  }
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  // Rates near 1 differ in later digits.
  const int digits = 0.999 < number && number < 1 ? 15 : 6;
  return nlohmann::ordered_json(std::stod(fmt::format("{:.{}g}", number, digits))).dump();
}

}  // namespace

std::string closing_text(std::span<const planner::Assumption> assumptions, std::span<const Note> warnings) {
  std::vector<std::string> assumed;
  for (const planner::Assumption& a : assumptions) {
    assumed.push_back(fmt::format("{} {} ({})", a.name, assumed_text(a.value), a.source));
  }
  std::string text;
  if (!assumed.empty()) text = wrapped(fmt::format("Assumptions: {}.", fmt::join(assumed, ", ")), 2) + '\n';
  for (const Note& warning : warnings) {
    if (warning.explains_null) continue;
    text += wrapped(fmt::format("Warning ({}): {}.", warning.code, warning.message), 2) + '\n';
  }
  return text;
}

std::string brief_warnings(std::span<const Note> warnings) {
  constexpr std::size_t shown = 2;
  std::vector<const Note*> told;
  for (const Note& warning : warnings)
    if (!warning.explains_null) told.push_back(&warning);
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, told.size()); ++i)
    text += wrapped(fmt::format("Warning: {}.", told[i]->message), 2) + '\n';
  if (told.size() > shown) text += fmt::format("{} more: --explain\n", counted(std::ssize(told) - 2, "warning"));
  return text;
}

std::string without_control_characters(std::string_view text, std::string_view kept) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F, which terminals obey, too.
    const bool second_set = byte == 0xc2 && 0x80 <= next && next < 0xa0;
    const bool control = byte < 0x20 || byte == 0x7f || second_set;
    if (!control || kept.find(text[i]) != std::string_view::npos) {
      shown += text[i];
      continue;
    }
    shown += fmt::format("\\x{:02x}", byte);
    if (second_set) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
  }
  return shown;
}

std::string point_words(double batch, double context) {
  return context == 0 ? fmt::format("batch {}", brief(batch))
                      : fmt::format("batch {}, context {}", brief(batch), brief(context));
}

}  // namespace specdec::render
