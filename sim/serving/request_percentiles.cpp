#include "sim/serving/request_percentiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace specdec::sim {

std::vector<double> first_token_seconds(const ServingResult& run) {
  std::vector<double> values;
  values.reserve(run.counted_requests);
  for (std::size_t i = run.first_counted; i < run.first_counted + run.counted_requests; ++i)
    values.push_back(run.requests[i].first_token_seconds);
  return values;
}

std::vector<double> seconds_per_token(const ServingResult& run) {
  std::vector<double> values;
  values.reserve(run.counted_requests);
  for (std::size_t i = run.first_counted; i < run.first_counted + run.counted_requests; ++i) {
    const ServedRequest& request = run.requests[i];
    if (request.output_tokens < 2) continue;
    values.push_back((request.last_token_seconds - request.first_token_seconds) /
                     static_cast<double>(request.output_tokens - 1));
  }
  return values;
}

double percentile_of(std::vector<double>& values, double percent) {
  // The last bits of the product must not require one value more.
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()) * (1 - 1e-12));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

std::optional<RequestPercentiles> percentiles_of(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  RequestPercentiles result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  result.p50 = percentile_of(values, 50);
  result.p90 = percentile_of(values, 90);
  result.p99 = percentile_of(values, 99);
  return result;
}

}  // namespace specdec::sim
