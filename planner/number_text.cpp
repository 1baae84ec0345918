#include "planner/number_text.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace specdec::planner {

std::string brief(double value, int digits) {
  const double size = std::abs(value);
  return size >= std::pow(10.0, digits) && size < 1e7 ? fmt::format("{:.0f}", value)
                                                      : fmt::format("{:.{}g}", value, digits);
}

std::string percent(double share) {
  if (share < 0.995 || share > 1) return fmt::format("{:.2g}%", 100 * share);
  if (share == 1) return "100%";
  return share < 0.9995 ? fmt::format("{:.1f}%", 100 * share) : ">99.9%";
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string capitalised(std::string text) {
  // Names of files stay as they are.
  if (text.substr(0, text.find(' ')).find_first_of("./") != std::string::npos) return text;
  if (!text.empty() && 'a' <= text[0] && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
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

double half_unit_of(std::string_view number) {
  const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, exponent_at);
  const std::size_t point = mantissa.find('.');
  const double decimals = point == std::string_view::npos ? 1 : static_cast<double>(mantissa.size() - point - 1);
  std::string_view exponent = number.substr(std::min(exponent_at + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int power = 0;
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  return 0.5 * std::pow(10, power - std::max(1.0, decimals));
}

double complement(double rate, double exact) {
  constexpr std::size_t most_decimals = 6;
  const std::string digits = fmt::format("{}", rate);
  const std::size_t point = digits.find('.');
  if (point == std::string::npos || digits.find('e') != std::string::npos) return exact;
  const std::size_t decimals = digits.size() - point - 1;
  return decimals > most_decimals ? exact : std::stod(fmt::format("{:.{}f}", exact, decimals));
}

}  // namespace specdec::planner
