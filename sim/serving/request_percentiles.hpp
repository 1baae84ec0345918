#pragma once

#include <optional>
#include <vector>

#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Times of the counted requests, in order of arrival: seconds to the first token, and (last - first) / (output tokens
/// - 1) for requests of two tokens or more.
std::vector<double> first_token_seconds(const ServingResult& run);
std::vector<double> seconds_per_token(const ServingResult& run);

/// The smallest value with at least this percentage, (0, 100), of the values at or below it; reorders them.
double percentile_of(std::vector<double>& values, double percent);

/// `asked`, in RequestPercentiles, is that percentile, (0, 100). Empty if there are no values; reorders them.
std::optional<RequestPercentiles> percentiles_of(std::vector<double>& values, double asked);

/// The same of values that occur several times.
std::optional<RequestPercentiles> percentiles_of(std::vector<GapCount>& gaps, double asked);

}  // namespace specdec::sim
