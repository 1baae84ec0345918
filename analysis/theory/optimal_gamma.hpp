#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"

namespace specdec::theory {

/// All integers from first to last, inclusive; last = unbounded: every integer from first on.
struct GammaRange {
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const GammaRange&, const GammaRange&) = default;
};

enum class OptimumKind {
  attained,   ///< gamma is the optimum
  unbounded,  ///< the speedup grows forever towards `speedup` without attaining it: there is no optimal gamma
  too_large,  ///< the optimum lies beyond 2^53 drafts: unbounded in practice; `speedup` is that of gamma = 2^53
};

struct OptimalGamma {
  OptimumKind kind = OptimumKind::attained;
  /// The optimum, the smallest one in a tie; 2^53 if none is attained.
  std::int64_t gamma = 0;
  /// The speedup of gamma if attained or too large; else the supremum, infinity if there is none.
  double speedup = 1;
  /// The optimum and any direct neighbour whose speedup differs by less than 4 ulp; one number if there is no tie.
  GammaRange ties;

  bool attained() const { return kind == OptimumKind::attained; }
};

/// The gamma >= 0 with the greatest walltime_improvement, over all integers: there is no search limit.
///
/// Found exactly: the cost is linear between the knots of v, and on each such piece the sign of
/// S(gamma + 1) - S(gamma) changes at most once, so a binary search finds its best gamma. Which of two neighbours
/// is greater is decided by survival(gamma + 1) cost(gamma) > (cost(gamma + 1) - cost(gamma)) E[K | gamma]. Over all
/// pieces of a general v the greatest of these wins: nothing is left out and nothing is assumed about v.
///
/// Source:   Leviathan et al. 2023, Section 3.5; docs/theory.md#optimal-gamma
/// Assumes:  as walltime_improvement.
/// @throws std::domain_error if a cost is NaN, negative or infinite
/// Accuracy: exact, except that a direct neighbour within 4 ulp counts as a tie, and the smaller one is returned
OptimalGamma optimal_gamma(const core::AcceptanceProfile& acceptance, const core::StepCost& cost);

/// The paper's costs: v = 1, no overhead. gamma = 0 iff alpha <= c.
/// @param c  draft step time / target step time, dimensionless, >= 0
OptimalGamma optimal_gamma(const core::AcceptanceProfile& acceptance, double c);

struct RealOptimum {
  double gamma = 0;    ///< >= 0; infinity if it exceeds the range of double
  double speedup = 1;  ///< >= 1
};

/// The maximum over real gamma >= 0 of (1 - alpha^(gamma+1)) / ((1 - alpha)(1 + c gamma)), by Lambert W:
///
///   with z = -W_{-1}(-exp(-1 - L (1 - c) / c)), L = -ln(alpha):  gamma = (z - 1) / L - 1 / c,
///
/// solved as delta - ln(1 + delta) = L (1 - c) / c with z = 1 + delta, which neither underflows nor cancels.
/// May be positive, but below 1, for alpha <= c, where no integer gamma helps.
///
/// Source:   docs/theory.md#optimal-gamma-real
/// @param c  draft step time / target step time, dimensionless, >= 0
/// @return empty if there is no finite optimum: c = 0 < alpha, or alpha = 1 > c
/// @throws std::domain_error if c is NaN, negative or infinite
/// Accuracy: absolute error of gamma <= 1e-12 max(1, gamma); relative error of the speedup <= 1e-13
std::optional<RealOptimum> optimal_gamma_real(const core::AcceptanceRate& rate, double c);

/// The smallest gamma whose expected tokens reach a share of their limit for gamma -> infinity: relevant for c = 0.
///
///   1 - alpha^(gamma+1) >= share
///
/// Source:   docs/theory.md#optimal-gamma
/// @param share  dimensionless, [0, 1)
/// @return empty at alpha = 1, where the limit is infinite, and if the answer exceeds 2^53
/// @throws std::domain_error if share is NaN or outside [0, 1)
std::optional<std::int64_t> gamma_reaching_share(const core::AcceptanceRate& rate, double share);

/// The cost c_g at which gamma = g and gamma = g - 1 are equally fast; g is optimal for c in [c_(g+1), c_g].
///
///   c_g = alpha^g (1 - alpha) / (1 - alpha^g - (g - 1) alpha^g (1 - alpha));   c_1 = alpha
///
/// Source:   docs/theory.md#ties
/// @param gamma  g >= 1
/// @return dimensionless, in [0, 1]
/// @throws std::domain_error if gamma < 1
/// Accuracy: relative error <= 1e-13
double tie_cost(const core::AcceptanceRate& rate, std::int64_t gamma);

}  // namespace specdec::theory
