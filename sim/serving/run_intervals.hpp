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
template <class Value>
std::vector<Value> pooled(const std::vector<std::vector<Value>>& of_runs) {
  std::vector<Value> all;
  for (const std::vector<Value>& of_run : of_runs) all.insert(all.end(), of_run.begin(), of_run.end());
  return all;
}

/// Percentiles of the values of all runs together, numbers or GapCounts; empty if there are none.
/// @param percent  that of `asked`, (0, 100)
template <class Value>
std::optional<SimulatedPercentiles> percentiles_over(std::vector<std::vector<Value>> of_runs, double percent);

}  // namespace specdec::sim
