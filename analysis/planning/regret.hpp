#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// The best gamma among those allowed, and the loss from a fixed gamma that is not the best one, or from an acceptance
/// rate that is not known exactly.
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

/// theory::near_optimal_gammas among the allowed gammas. If max_gamma excludes the optimum, time is O(max_gamma).
/// @param tolerance  relative loss of speedup, dimensionless, [0, 1]
std::vector<theory::GammaRange> near_best_gammas(const core::AcceptanceProfile& acceptance, const SearchSpace& space,
                                                 double tolerance);

/// The share of the best speedup that gamma loses, relative to the supremum if no optimum is attained.
///
///   regret = 1 - S(gamma) / max_g S(g)
///
/// Source:   docs/theory.md#regret
/// Assumes:  as theory::walltime_improvement.
/// @param gamma  drafted tokens per step, in [0, max_gamma]
/// @return in [0, 1]; 1 if the speedup can grow without bound
/// @throws std::domain_error if gamma is outside its range or a cost is NaN, negative or infinite
/// Accuracy: absolute error <= 1e-12
double regret(const core::AcceptanceProfile& acceptance, std::int64_t gamma, const SearchSpace& space);

/// All rates from low to high.
struct RateInterval {
  core::AcceptanceRate low;
  core::AcceptanceRate high;
};

/// The rate halfway between the ends; it keeps the digits of the smaller of alpha and epsilon.
core::AcceptanceRate middle(const RateInterval& rates);

/// The largest regret of gamma over an interval of rates. It is attained at an end, whatever the costs: for g > h
/// the ratio S(g) / S(h) grows with alpha, since 1 + alpha^g / (1 + ... + alpha^(g-1)) does, so gamma loses most
/// to smaller rivals at the low end and most to larger ones at the high end.
///
///   max(regret at low, regret at high)
///
/// Source:   docs/theory.md#regret
/// @throws std::domain_error if high < low, gamma is outside [0, max_gamma], or a cost is NaN, negative or infinite
double worst_regret(const RateInterval& rates, std::int64_t gamma, const SearchSpace& space);

struct MinimaxGamma {
  /// False if no gamma attains the smallest worst regret, as for c = 0: every larger gamma does better.
  bool attained = true;
  /// The smallest gamma whose worst regret is smallest; no_max_gamma if none is attained.
  std::int64_t gamma = 0;
  double worst_regret = 0;
};

/// The gamma with the smallest worst regret over an interval of rates, among those up to `largest`; regrets are
/// relative to the best of all gammas of the space.
///
/// It lies between the best gammas of the two ends, as far as these are allowed; on a range of gammas over which the
/// cost of verification is linear the worst regret falls and then rises, so one binary search per range finds
/// it.
///
/// If a bound is given and the speedup at the high end has none, every gamma's regret there is 1: the gamma that is
/// fastest there is taken.
///
/// Source:   docs/theory.md#regret
/// @param largest  >= 0; no_max_gamma for no bound other than the space's
/// @throws std::domain_error if high < low, largest < 0, or a cost is NaN, negative or infinite
/// Accuracy: exact, except that gammas whose worst regrets differ only by rounding may be exchanged
MinimaxGamma minimax_gamma(const RateInterval& rates, const SearchSpace& space, std::int64_t largest = no_max_gamma);

/// The range of rates at which one gamma is best.
struct BestStretch {
  std::int64_t gamma;
  core::AcceptanceRate low;
  core::AcceptanceRate high;
};

/// The gammas that are best somewhere in the interval, each with its rates, in order of alpha. The best gamma never
/// falls as alpha grows, so each has one stretch, whose end is found by bisection.
///
/// Source:   docs/theory.md#regret
/// @param limit  the largest number of stretches, from the low end on; the last one then ends below the interval's end
/// @throws std::domain_error if high < low, or a cost is NaN, negative or infinite
/// Accuracy: at the ends the speedups of the two neighbours agree to 8 ulp
std::vector<BestStretch> best_stretches(const RateInterval& rates, const SearchSpace& space, std::size_t limit);

}  // namespace specdec::planning
