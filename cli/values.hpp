#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cli {

/// Legal values of an option. Infinite ends are open.
struct Range {
  double lo = 0.0;
  double hi = std::numeric_limits<double>::infinity();
  bool lo_open = false;

  bool contains(double value) const;
  std::string to_string() const;
};

/// The text of an option's value as a number. Locale independent; the whole text must be a number.
/// @throws UsageError `--option is TEXT, but must be a number in [lo, hi]`; NaN is never legal
double parse_number(std::string_view option, std::string_view text, const Range& range);

/// The same for integers in [lo, hi]; 1e9 is one.
std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t lo, std::int64_t hi);

/// The parts of `text` between the separators; an empty text is one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The different entries of a list separated by commas; none where there is no list.
/// @throws UsageError if an entry is empty or stands twice
std::vector<std::string> listed(std::string_view option, const std::optional<std::string>& list);

/// The words with blanks between them, those in quotes that a POSIX shell would not take as they are.
std::string shell_words(const std::vector<std::string>& words);

/// `--option is TEXT, but must be EXPECTED`: the form of every complaint about a value.
[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view expected);

}  // namespace specdec::cli
