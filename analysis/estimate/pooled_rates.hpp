#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// Acceptance rates of groups, each drawn towards the mean of all.
struct PooledRates {
  /// Rates of the groups, in their order; empty for those without a rate in (0, 1) and an interval about it.
  std::vector<std::optional<Estimate>> groups = {};
  /// The rate of all groups, and that of another one.
  Estimate common = {};
  Estimate another = {};
  /// Standard deviation of the groups' log-odds.
  Estimate spread = {};
};

/// Pools the log-odds of rates by GroupShrinkage, each with the variance that its 95% interval has:
///
///   V = ((logit hi - logit lo) / (2 * 1.96))^2,   where one end is 0 or 1 by the distance of the other
///
/// Source:   docs/theory.md#groups
/// @param rates  with the intervals of the groups' own data
/// @return empty for fewer than two groups that can be pooled
std::optional<PooledRates> pooled_rates(std::span<const std::optional<Estimate>> rates);

}  // namespace specdec::estimate
