#include "render/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "traces/formats/text_parts.hpp"

namespace specdec::render {
namespace {

std::size_t page_columns = 100;

}  // namespace

std::size_t text_width() { return page_columns; }

void set_text_width(std::size_t columns) {
  constexpr std::size_t narrowest = 40;
  page_columns = std::max(narrowest, columns);
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

std::string factor_text(double speedup) {
  return speedup < 100 ? fmt::format("{:.2f}x", speedup) : fmt::format("{:.4g}x", speedup);
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

namespace {

/// @param unit  after the value and each end, `after` the value alone
std::string ranged(double value, const std::optional<estimate::Interval>& range, double factor, const char* unit,
                   const char* after = "") {
  const auto shown = [&](double number) { return brief(factor * number, 3) + unit; };
  if (!range || (shown(range->lo) == shown(value) && shown(range->hi) == shown(value))) return shown(value) + after;
  return fmt::format("{}{} ({} to {})", shown(value), after, shown(range->lo), shown(range->hi));
}

}  // namespace

std::string with_range(double value, const std::optional<estimate::Interval>& range) {
  return ranged(value, range, 1, "");
}

std::string speed_with_range(double speedup, const std::optional<estimate::Interval>& range) {
  return ranged(speedup, range, 1, "", "x plain decoding");
}

std::string share_with_range(double share, const std::optional<estimate::Interval>& range) {
  return ranged(share, range, 100, "%");
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

/// The length in bytes of a character at the beginning that a terminal obeys or that turns the order of others around:
/// C0 and C1 controls, and the marks, embeddings, overrides and isolates of direction; 0 for any other.
std::size_t obeyed_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && 0x80 <= byte(1) && byte(1) < 0xa0) return 2;
  const bool turns = byte(0) == 0xe2 && ((byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f ||
                                                              (0xaa <= byte(2) && byte(2) <= 0xae))) ||
                                         (byte(1) == 0x81 && 0xa6 <= byte(2) && byte(2) <= 0xa9));
  return turns ? 3 : 0;
}

/// The length in bytes of the character at the beginning; 0 if what stands there is not UTF-8.
std::size_t character_bytes(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(4, text.size()); ++bytes)
    if (traces::is_utf8(text.substr(0, bytes))) return bytes;
  return 0;
}

}  // namespace

std::string visible(std::string_view text, std::string_view kept) {
  std::string shown;
  for (std::size_t bytes; !text.empty(); text.remove_prefix(bytes)) {
    const std::size_t known = character_bytes(text);
    bytes = std::max<std::size_t>(known, 1);
    if ((known > 0 && obeyed_bytes(text) == 0) || kept.find(text[0]) != std::string_view::npos) {
      shown += text.substr(0, bytes);
    } else if (text[0] == '\n' || text[0] == '\t') {
      shown += text[0] == '\n' ? "\\n" : "\\t";
    } else {
      for (const char byte : text.substr(0, bytes)) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return shown;
}

std::string json_text(const nlohmann::ordered_json& document) {
  // Paths need not be UTF-8; a byte that is not becomes U+FFFD.
  const std::string text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = text[i] == '\n' ? 0 : obeyed_bytes(std::string_view(text).substr(i));
    const auto byte = [&](std::size_t k) { return static_cast<unsigned>(static_cast<unsigned char>(text[i + k])); };
    if (bytes == 0) {
      shown += text[i++];
      continue;
    }
    const unsigned code = bytes == 1   ? byte(0)
                          : bytes == 2 ? (byte(0) & 0x1fU) << 6U | (byte(1) & 0x3fU)
                                       : (byte(0) & 0xfU) << 12U | (byte(1) & 0x3fU) << 6U | (byte(2) & 0x3fU);
    shown += fmt::format("\\u{:04x}", code);
    i += bytes;
  }
  return shown;
}

std::string point_words(double batch, double context) {
  return context == 0 ? fmt::format("batch {}", brief(batch))
                      : fmt::format("batch {}, context {}", brief(batch), brief(context));
}

}  // namespace specdec::render
