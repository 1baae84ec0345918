#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "planner/assumption.hpp"
#include "planner/number_text.hpp"
#include "traces/note.hpp"

namespace specdec::render {

/// Maximum width of human-readable output in characters: 100, or what set_text_width was given last.
std::size_t text_width();
/// @param columns  for the whole process; at least 40 are taken. Tables are as wide as their columns.
void set_text_width(std::size_t columns);

/// Units of human-readable output.
inline constexpr double milliseconds_per_second = 1000;
using planner::bytes_per_gigabyte;

using planner::brief;
using planner::capitalised;
using planner::counted;
using planner::percent;
using planner::split;

/// A number with the given number of decimals; "-" if there is none.
std::string fixed(double value, int decimals = 3);
std::string fixed(const std::optional<double>& value, int decimals = 3);

/// "2, 4 to 6" for increasing numbers.
std::string listed_ranges(const std::vector<std::int64_t>& numbers);

/// A speedup: "2.31x".
std::string factor_text(double speedup);

/// "batch 8, context 4096"; the context is left out where it is 0, an empty cache.
std::string point_words(double batch, double context);

/// A number in a column: three decimals if they suffice, else as brief.
std::string in_column(double value);

/// A batch or a gamma; the mean batch of a run need not be an integer.
std::string whole_or_brief(double count);
/// "1" or "1 to 8".
std::string from_to(double first, double last);
/// Seconds as milliseconds, to four digits.
std::string milliseconds(double seconds);

/// An estimate with the given number of decimals and its 95% interval: "1.97 +-0.04" if that is symmetric about the
/// value to a tenth of its half, else "1.97 [1.90, 2.00]"; the value alone if there is none.
std::string with_interval(const estimate::Estimate& estimate, int decimals);

/// "1.97 (1.93 to 2.01)", three digits; the value alone if there is no interval, or none that is seen in these.
std::string with_range(double value, const std::optional<estimate::Interval>& range);
/// "1.69x plain decoding (1.65 to 1.72)".
std::string speed_with_range(double speedup, const std::optional<estimate::Interval>& range);
/// The same of a share: "72.1% (71.9% to 72.2%)".
std::string share_with_range(double share, const std::optional<estimate::Interval>& range);

/// `text` broken at blanks into lines of at most text_width() characters; continuation lines are indented.
std::string wrapped(std::string_view text, std::size_t indent = 0);

/// A document in lines, without a character that a terminal obeys: those are written as \uNNNN.
std::string json_text(const nlohmann::ordered_json& document);

/// `text` on one line, so that it leaves a terminal as it is: backslash escapes for control characters and for those
/// that turn the order of others around, and bytes that are not UTF-8 as \xNN.
/// @param kept  control characters that stay, as the ends of lines of a whole text
std::string visible(std::string_view text, std::string_view kept = {});

}  // namespace specdec::render
