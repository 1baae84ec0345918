#pragma once

#include <optional>
#include <vector>

#include "sim/serving/capacity.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Figures of independent runs, with intervals from the runs' own values.

/// 0.975 quantile of Student's t times the standard error of a mean, from values' deviations from it; 0 of one value.
double half_width_of(const std::vector<double>& deviations);

/// With its interval.
SimulatedValue mean_of(const std::vector<double>& values);

/// The values of all runs.
std::vector<double> pooled(const std::vector<std::vector<double>>& of_runs);

/// Percentiles of the values of all runs together; empty if there are none. @param percent  that of `asked`, (0, 100)
std::optional<SimulatedPercentiles> percentiles_over(std::vector<std::vector<double>> of_runs, double percent);

/// The same of values that occur several times. @param of_runs  [run], each in increasing order
std::optional<SimulatedPercentiles> percentiles_over(const std::vector<std::vector<GapCount>>& of_runs, double percent);

}  // namespace specdec::sim
