#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/step_cost.hpp"

/// The most that drafting could gain if the future of a text were known: bounds, not policies.
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

/// known_acceptance_program's cost alone, without keeping the decisions.
double known_acceptance_cost(std::span<const double> acceptance, std::int64_t max_gamma, const core::StepCost& cost);

/// The same for each of several texts, to the bit; eight are solved side by side, which is several times as fast for
/// texts of about one length.
std::vector<double> known_acceptance_costs(std::span<const std::span<const double>> texts, std::int64_t max_gamma,
                                           const core::StepCost& cost);

/// Expected steps and drafted tokens of an oracle that knows every outcome and drafts exactly the tokens that will be
/// accepted, without a limit.
struct OutcomeOracle {
  double steps = 0;    ///< 1 + sum_{t < T-1} (1 - a_t)
  double drafted = 0;  ///< sum_{t < T-1} a_t
};

/// The oracle over a text; a text of no tokens takes no steps.
/// Source:   docs/theory.md#known-acceptance
/// Shape:    acceptance (T), each in [0, 1]
/// Accuracy: relative error <= 1e-14
OutcomeOracle outcome_oracle(std::span<const double> acceptance);

class ReplayedRounds;

/// The expected cost of that oracle if it drafts at most gamma tokens per step, from a replay by position: its steps
/// are those of fixed gamma, outcome by outcome, and each of them drafts exactly what it accepts.
///
///   cost = sum_{j=0..gamma} E[steps that accept exactly j] cost(j)
///
/// Source:   docs/theory.md#known-acceptance
/// @param rounds  replayed with ReplayOptions::by_position
/// @param gamma   [0, rounds.max_gamma()]
double outcome_oracle_cost(const ReplayedRounds& rounds, std::int64_t gamma, const core::StepCost& cost);

}  // namespace specdec::theory
