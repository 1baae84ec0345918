#pragma once

#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// The best gamma among those allowed.
namespace specdec::planning {

/// No bound on gamma; beyond 2^53 an optimum is unbounded in practice.
inline constexpr std::int64_t no_max_gamma = std::int64_t{1} << 53;

/// The gammas 0..max_gamma and the costs of their steps.
struct SearchSpace {
  core::StepCost cost = {};
  std::int64_t max_gamma = no_max_gamma;  ///< >= 0
};

/// theory::optimal_gamma among the allowed gammas; always attained if max_gamma is less than no_max_gamma.
///
/// On a range of gammas over which the cost of verification is linear the speedup rises and then falls, so the
/// best gamma up to a bound is found by one binary search per range.
///
/// Source:   docs/theory.md#optimal-gamma
/// @throws std::domain_error if max_gamma < 0, or a cost is NaN, negative or infinite
theory::OptimalGamma best_gamma(const core::AcceptanceProfile& acceptance, const SearchSpace& space);

/// All rates from low to high.
struct RateInterval {
  core::AcceptanceRate low;
  core::AcceptanceRate high;
};

/// The rate halfway between the ends; it keeps the digits of the smaller of alpha and epsilon.
core::AcceptanceRate middle(const RateInterval& rates);

}  // namespace specdec::planning
