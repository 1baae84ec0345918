#pragma once

#include <optional>
#include <vector>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// A header of the library's own sources; it is not installed.

/// Of the requests that count, in order of arrival: seconds to the first token, and (last - first) / (output tokens -
/// 1) of those of two tokens or more.
std::vector<double> first_token_seconds(const ServingResult& run);
std::vector<double> seconds_per_token(const ServingResult& run);

/// The smallest value with at least this percentage, (0, 100), of the values at or below it; reorders them.
double percentile_of(std::vector<double>& values, double percent);

/// Nothing where there are none; reorders them.
std::optional<RequestPercentiles> percentiles_of(std::vector<double>& values);

}  // namespace specdec::sim
