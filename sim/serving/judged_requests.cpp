#include "sim/serving/judged_requests.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/request_percentiles.hpp"

namespace specdec::sim {

using planning::CapacityLimit;

bool is_limited(const CapacityLimits& limits) { return limits.ttft_seconds || limits.tpot_seconds; }

JudgedRequests judge(std::vector<double>& ttft, std::vector<double>& tpot, const CapacityLimits& limits) {
  JudgedRequests judged;
  const auto judge_one = [&](std::vector<double>& values, const std::optional<double>& limit, CapacityLimit by) {
    if (!limit || values.empty()) return;
    const double value = percentile_of(values, limits.percentile);
    const double excess = value > 0 ? std::max(-20.0, std::log(value / *limit)) : -20;
    if (judged.by == CapacityLimit::none || excess > judged.excess) judged = {excess, by};
  };
  judge_one(ttft, limits.ttft_seconds, CapacityLimit::ttft);
  judge_one(tpot, limits.tpot_seconds, CapacityLimit::tpot);
  return judged;
}

}  // namespace specdec::sim
