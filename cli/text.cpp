#include "cli/text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"

namespace specdec::cli {

std::string brief(double value, int digits) {
  const double size = std::abs(value);
  return size >= std::pow(10.0, digits) && size < 1e7 ? fmt::format("{:.0f}", value)
                                                      : fmt::format("{:.{}g}", value, digits);
}

std::string in_column(double value) {
  const bool shows = value == 0 || (std::abs(value) >= 0.01 && std::abs(value) < 1e6);
  return shows ? fmt::format("{:.3f}", value) : brief(value);
}

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

std::string percent(double share) {
  if (share < 0.995 || share > 1) return fmt::format("{:.2g}%", 100 * share);
  if (share == 1) return "100%";
  return share < 0.9995 ? fmt::format("{:.1f}%", 100 * share) : ">99.9%";
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > 0 && column + 1 + word.size() > text_width) {
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

std::string without_control_characters(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return shown;
}

void TextTable::add_row(std::vector<std::string> cells) {
  core::require_same_size("TextTable::add_row", "cells", cells.size(), "columns", columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].heading.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const char* const form = columns_[c].align == Align::left ? "{}{:<{}}" : "{}{:>{}}";
      text += fmt::format(fmt::runtime(form), c == 0 ? "" : "  ", cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + '\n';
  };
  std::string table = line([&](std::size_t c) { return columns_[c].heading; });
  auto heading = headings_.begin();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (; heading != headings_.end() && heading->first == r; ++heading) table += heading->second + '\n';
    table += line([&](std::size_t c) { return rows_[r][c]; });
  }
  return table;
}

}  // namespace specdec::cli
