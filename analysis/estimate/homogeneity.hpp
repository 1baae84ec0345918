#pragma once

#include <optional>

#include "analysis/estimate/round_moments.hpp"
#include "analysis/estimate/serving_summary.hpp"

/// Internal to analysis/estimate.
namespace specdec::estimate {

/// Tests whether one acceptance rate fits all positions; empty for alpha of 0 or 1, and with too few outcomes for two
/// cells. Tokens per step are not set.
std::optional<HomogeneityTest> homogeneity_test(const RoundMoments& moments, double alpha);

}  // namespace specdec::estimate
