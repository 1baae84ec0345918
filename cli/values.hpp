#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/usage_error.hpp"
#include "planner/question_error.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using planner::LegalRange;
using planner::unbounded;
using render::split;

/// The text of an option's value as a number. Locale independent; the whole text must be a number.
/// @throws UsageError `--option is TEXT, but must be a number in [lo, hi]`; NaN is never legal, nor is what a double
/// holds with fewer digits than other numbers, below 2.3e-308
double parse_number(std::string_view option, std::string_view text, const LegalRange& range);

/// The same for integers in [lo, hi]; 1e9 is one.
std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t lo, std::int64_t hi);

/// The numbers of a list separated by commas.
std::vector<double> parse_numbers(std::string_view option, std::string_view list, const LegalRange& range);

/// "2,4,8": integers in [lo, hi], each above the one before it.
std::vector<std::int64_t> rising_integers(std::string_view option, std::string_view list, std::int64_t lo,
                                          std::int64_t hi);

/// The different entries of a list separated by commas; none where there is no list.
/// @throws UsageError if an entry is empty or stands twice
std::vector<std::string> listed(std::string_view option, const std::optional<std::string>& list);

/// Those of the machine, at most 64.
std::int64_t default_threads();

/// The words with blanks between them, those in quotes that a POSIX shell would not take as they are.
std::string shell_words(const std::vector<std::string>& words);

/// The largest gamma that --at takes.
inline constexpr std::int64_t largest_counted_gamma = 1000;

}  // namespace specdec::cli
