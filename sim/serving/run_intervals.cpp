#include "sim/serving/run_intervals.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/core/tails.hpp"
#include "sim/serving/request_percentiles.hpp"

namespace specdec::sim {
namespace {

/// A value over all runs together, with an interval from the runs' own values (sectioning): of the logarithm, so that
/// no end leaves the positive numbers, or of the value itself where one is 0.
SimulatedValue sectioned(double value, std::vector<double> of_runs) {
  const auto is_positive = [](double x) { return x > 0; };
  if (is_positive(value) && std::all_of(of_runs.begin(), of_runs.end(), is_positive)) {
    for (double& of_run : of_runs) of_run = std::log(of_run / value);
    const double factor = std::exp(half_width_of(of_runs));
    return {value, value / factor, value * factor};
  }
  for (double& of_run : of_runs) of_run -= value;
  const double half = half_width_of(of_runs);
  return {value, std::max(0.0, value - half), value + half};
}

/// @param each  [run]
SimulatedPercentiles sectioned(const RequestPercentiles& together, const std::vector<RequestPercentiles>& each) {
  const auto value = [&](double RequestPercentiles::*place) {
    std::vector<double> values;
    for (const RequestPercentiles& run : each) values.push_back(run.*place);
    return sectioned(together.*place, values);
  };
  return {value(&RequestPercentiles::p50), value(&RequestPercentiles::p90), value(&RequestPercentiles::p99),
          value(&RequestPercentiles::mean), value(&RequestPercentiles::asked)};
}

}  // namespace

double half_width_of(const std::vector<double>& deviations) {
  if (deviations.size() < 2) return 0;
  const auto count = static_cast<double>(deviations.size());
  double squares = 0;
  for (const double deviation : deviations) squares += deviation * deviation;
  return core::t_half_width_95(count - 1) * std::sqrt(squares / (count - 1) / count);
}

SimulatedValue mean_of(const std::vector<double>& values) {
  return sectioned(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()), values);
}

template <class Value>
std::optional<SimulatedPercentiles> percentiles_over(std::vector<std::vector<Value>> of_runs, double percent) {
  std::vector<Value> all = pooled(of_runs);
  const std::optional<RequestPercentiles> together = percentiles_of(all, percent);
  if (!together) return std::nullopt;
  std::vector<RequestPercentiles> each;
  for (std::vector<Value>& values : of_runs) each.push_back(percentiles_of(values, percent).value_or(*together));
  return sectioned(*together, each);
}
template std::optional<SimulatedPercentiles> percentiles_over(std::vector<std::vector<double>>, double);
template std::optional<SimulatedPercentiles> percentiles_over(std::vector<std::vector<GapCount>>, double);

}  // namespace specdec::sim
