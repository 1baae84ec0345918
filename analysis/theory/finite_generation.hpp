#pragma once

#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"

namespace specdec::theory {

/// The longest generation that can be computed, in tokens.
inline constexpr std::int64_t longest_generation = 10'000'000;

/// The generation of exactly `tokens` tokens.
struct FiniteGeneration {
  double expected_steps;  ///< speculative steps
  double steps_variance;  ///< steps^2
  double expected_cost;   ///< in plain target steps
  double speedup;         ///< tokens / expected_cost
};

/// Steps and cost of a generation that ends after exactly N tokens, each step drafting min(gamma, remaining - 1).
///
///   R(n) = 1 + sum_{k=1}^{gamma} P(K = k) R(n - k) + P(K = gamma + 1) R(n - gamma - 1),   R(n <= 0) = 0
///
/// and the same recursion for the cost (with cost(min(gamma, n - 1)) in place of 1) and the second moment. Capping
/// gamma at the end changes no step count and saves drafts.
///
/// Source:   the cap for short generations below Leviathan et al. 2023, Theorem 3.8; docs/theory.md#finite-generation
/// Assumes:  acceptances independent, the same profile in every step.
/// @param gamma   drafted tokens per step, >= 0
/// @param tokens  N, in [1, longest_generation]; time O(N min(gamma, N)), memory O(N)
/// @throws std::domain_error if gamma < 0, tokens is outside its range, or a cost is NaN, negative or infinite
/// Accuracy: relative error <= 1e-12
FiniteGeneration finite_generation(const core::AcceptanceProfile& acceptance, std::int64_t gamma, std::int64_t tokens,
                                   const core::StepCost& cost = {});

}  // namespace specdec::theory
