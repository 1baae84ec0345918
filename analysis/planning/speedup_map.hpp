#pragma once

#include <cstdint>
#include <vector>

#include "analysis/core/step_cost.hpp"

namespace specdec::planning {

/// The largest costs c at which at least `gamma` drafts are best, by acceptance rate.
struct GammaBoundary {
  std::int64_t gamma = 1;
  /// [i] belongs to rates[i]; 0 if fewer drafts are best at every c > 0.
  std::vector<double> c;
};

/// The best gamma in the plane of acceptance rate and draft cost.
///
///   (v(g + 1) + overhead + c g) / E[K | g]   is a straight line in c for each g
///
/// so the best gammas at one rate are the lower envelope of lines whose slopes g / E[K | g] grow with g; the
/// boundary of `gamma` is the c at which the envelope changes to a line of `gamma` or more. For the paper's costs
/// that is theory::tie_cost.
///
/// Source:   docs/theory.md#optimal-gamma
/// Assumes:  as theory::walltime_improvement.
/// @param rates      acceptance rates, each in [0, 1]
/// @param gammas     each in [1, max_gamma]
/// @param cost       v and overhead; its c is not used
/// @param max_gamma  the gammas 0 to this one are compared, [1, largest_mapped_gamma]
/// @return one entry for each of `gammas`
/// @throws std::domain_error if a value is outside its range
/// Accuracy: relative error <= 1e-9 for rates up to 0.99
std::vector<GammaBoundary> gamma_boundaries(const std::vector<double>& rates, const std::vector<std::int64_t>& gammas,
                                            const core::StepCost& cost, std::int64_t max_gamma);

inline constexpr std::int64_t largest_mapped_gamma = 4096;

/// The best gamma and its speedup over a grid. Shape: speedup, gamma (costs, rates).
struct SpeedupMap {
  std::vector<double> speedup;
  std::vector<std::int64_t> gamma;
};

/// best_gamma at every pair of a cost and a rate.
/// @param rates      acceptance rates, each in [0, 1]
/// @param costs      draft step times / target step time c, each in [0, inf)
/// @param cost       v and overhead; its c is not used
/// @param max_gamma  [1, largest_mapped_gamma]
/// @throws std::domain_error if a value is outside its range
SpeedupMap speedup_map(const std::vector<double>& rates, const std::vector<double>& costs, const core::StepCost& cost,
                       std::int64_t max_gamma);

}  // namespace specdec::planning
