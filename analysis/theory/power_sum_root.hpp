#pragma once

#include <cstdint>

#include "analysis/core/acceptance_rate.hpp"

namespace specdec::theory {

/// The rate at which sum_{j=1}^{gamma} alpha^j equals the given number of accepted drafts. Internal to analysis/theory.
///
/// Solved for alpha below 1/2 and for 1 - alpha above it, so that the smaller one has full relative accuracy.
/// @param accepted_drafts  values outside [0, gamma] give the nearest end
/// @param gamma            >= 1
core::AcceptanceRate rate_with_power_sum(long double accepted_drafts, std::int64_t gamma);

}  // namespace specdec::theory
