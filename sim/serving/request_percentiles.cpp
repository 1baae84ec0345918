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

namespace {

/// Place of a percentile among so many values, from 1 on.
std::int64_t rank_of(double percent, std::int64_t count) {
  // The last bits of the product must not require one value more.
  const double rank = std::ceil(percent / 100 * static_cast<double>(count) * (1 - 1e-12));
  return static_cast<std::int64_t>(std::max(1.0, rank));
}

}  // namespace

double percentile_of(std::vector<double>& values, double percent) {
  const auto place = values.begin() + rank_of(percent, static_cast<std::int64_t>(values.size())) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

std::optional<RequestPercentiles> percentiles_of(std::vector<double>& values, double asked) {
  if (values.empty()) return std::nullopt;
  RequestPercentiles result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  result.p50 = percentile_of(values, 50);
  result.p90 = percentile_of(values, 90);
  result.p99 = percentile_of(values, 99);
  result.asked = percentile_of(values, asked);
  return result;
}

std::optional<RequestPercentiles> percentiles_of(std::vector<GapCount>& gaps, double asked) {
  std::sort(gaps.begin(), gaps.end(), [](const GapCount& a, const GapCount& b) { return a.seconds < b.seconds; });
  std::int64_t count = 0;
  double sum = 0;
  for (const GapCount& gap : gaps) {
    count += gap.count;
    sum += gap.seconds * static_cast<double>(gap.count);
  }
  if (count == 0) return std::nullopt;
  const auto at = [&](double percent) {
    std::int64_t left = rank_of(percent, count);
    for (const GapCount& gap : gaps) {
      left -= gap.count;
      if (left <= 0) return gap.seconds;
    }
    return gaps.back().seconds;
  };
  return RequestPercentiles{sum / static_cast<double>(count), at(50), at(90), at(99), at(asked)};
}

}  // namespace specdec::sim
