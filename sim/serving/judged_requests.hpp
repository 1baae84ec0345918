#pragma once

#include <vector>

#include "sim/serving/capacity.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// True if a time is limited.
bool is_limited(const CapacityLimits& limits);

/// The distance of requests from their limits.
struct JudgedRequests {
  /// ln(value / limit), the larger of the two; lowest if nothing is limited.
  double excess = -20;
  planning::CapacityLimit by = planning::CapacityLimit::none;
};

/// Judges times to the first token and per output token, of which those that are limited count; reorders them.
JudgedRequests judge(std::vector<double>& ttft, std::vector<double>& tpot, const CapacityLimits& limits);

/// A load at which all replications were run.
struct JudgedLoad {
  JudgedRequests together;
  /// [replication]
  std::vector<JudgedRequests> each;
};

}  // namespace specdec::sim
