#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::planner {

/// Decimal gigabytes, as used for devices and by people.
inline constexpr double bytes_per_gigabyte = 1e9;

/// A number for a human, to a few significant digits.
std::string brief(double value, int digits = 4);

/// A share in [0, 1] in per cent, to two digits; a share just below 1 is not rounded to 100%.
std::string percent(double share);

/// "1 text", "2 texts".
std::string counted(std::int64_t number, std::string_view what);

/// `text` with a capital first letter.
std::string capitalised(std::string text);

/// The parts of `text` between the separators; an empty text is one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Half a unit of the last digit of a typed number, "2.92" or "1e-3": the largest distance to the value it was rounded
/// from. Integers are taken to a tenth: a length of "3" is seldom one of 2.5.
double half_unit_of(std::string_view number);

/// 1 - rate, with as many decimals as the rate if these are few, as for typed rates: 0.32 for 0.68, and
/// not 0.31999999999999995.
/// @param exact  1 - rate as it is known; returned for a rate of more than 6 decimals
double complement(double rate, double exact);

}  // namespace specdec::planner
