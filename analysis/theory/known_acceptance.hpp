#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/step_cost.hpp"

/// The most that drafting could gain if the acceptances of a text were known: a bound, not a policy.
namespace specdec::theory {

struct KnownAcceptanceProgram {
  /// Expected cost of the text in units of one plain target step.
  double cost = 0;
  /// The number of drafts of a step that starts at t; the smallest in a tie. Shape: (T)
  std::vector<std::int64_t> gammas;
};

/// The cheapest drafting of a text whose acceptance probabilities are known beforehand, while the outcomes are not. No
/// policy that decides from the past alone costs less over this text.
///
///   V(t) = min_{0 <= g <= min(max_gamma, T-t-1)} cost(g) + sum_{k=1..g} (S_(k-1) - S_k) V(t+k) + S_g V(t+g+1),
///   S_k = a_t ... a_(t+k-1),   V(T) = 0
///
/// Source:   docs/theory.md#known-acceptance
/// Shape:    acceptance (T), each in [0, 1]; time O(T max_gamma), memory O(T)
/// @param max_gamma  largest number of drafts of a step, >= 0
/// @throws std::domain_error if an acceptance, max_gamma or a cost is outside its range
/// Accuracy: relative error <= 1e-12
KnownAcceptanceProgram known_acceptance_program(std::span<const double> acceptance, std::int64_t max_gamma,
                                                const core::StepCost& cost);

}  // namespace specdec::theory
