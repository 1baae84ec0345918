#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/usage_error.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using render::split;

/// Legal values of an option. The usual upper end leaves room for any ratio and any time in seconds, and none for sums
/// and products of such numbers that overflow. Infinite ends are open.
struct Range {
  double lo = 0.0;
  double hi = 1e9;
  bool lo_open = false;

  bool contains(double value) const;
  std::string to_string() const;
};

/// The text of an option's value as a number. Locale independent; the whole text must be a number.
/// @throws UsageError `--option is TEXT, but must be a number in [lo, hi]`; NaN is never legal, nor is what a double
/// holds with fewer digits than other numbers, below 2.3e-308
double parse_number(std::string_view option, std::string_view text, const Range& range);

/// The same for integers in [lo, hi]; 1e9 is one.
std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t lo, std::int64_t hi);

/// The different entries of a list separated by commas; none where there is no list.
/// @throws UsageError if an entry is empty or stands twice
std::vector<std::string> listed(std::string_view option, const std::optional<std::string>& list);

/// The words with blanks between them, those in quotes that a POSIX shell would not take as they are.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace specdec::cli
