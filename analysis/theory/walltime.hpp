#pragma once

#include <cstdint>
#include <optional>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"

namespace specdec::theory {

/// Expected improvement of the wall time over plain decoding.
///
///   E[K] / (v(gamma + 1) + c gamma + overhead) for gamma >= 1;   1 at gamma = 0.
///   With v = 1 and overhead = 0 the paper's (1 - alpha^(gamma+1)) / ((1 - alpha)(1 + c gamma)).
///
/// Source:   Leviathan et al. 2023, Theorem 3.8; docs/theory.md#walltime-improvement
/// Assumes:  long generations; acceptances independent.
/// @param gamma  drafted tokens per step, >= 0
/// @param cost   costs of one step, in units of one plain target step
/// @return > 1 if speculation is faster; 0 if the value is below the range of double
/// @throws std::domain_error if gamma < 0, or a cost is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double walltime_improvement(const core::AcceptanceProfile& acceptance, std::int64_t gamma, const core::StepCost& cost);

/// The paper's form, with the draft-to-target cost ratio alone.
/// @param c  draft step time / target step time, dimensionless, >= 0
double walltime_improvement(const core::AcceptanceProfile& acceptance, std::int64_t gamma, double c);

/// True iff some gamma >= 1 improves the wall time: alpha > c.
/// Source:   Leviathan et al. 2023, Corollary 3.9
/// @param c  draft step time / target step time, dimensionless, >= 0
/// @throws std::domain_error if c is NaN, negative or infinite
bool some_gamma_helps(const core::AcceptanceRate& rate, double c);

/// The improvement that gamma = 1 guarantees for alpha > c: (1 + alpha) / (1 + c).
/// Source:   Leviathan et al. 2023, Corollary 3.9
/// @param c  draft step time / target step time, dimensionless, >= 0
/// @throws std::domain_error if c is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double guaranteed_improvement(const core::AcceptanceRate& rate, double c);

/// The rate above which some gamma >= 1 improves the wall time: alpha = c for the paper's costs; in general the
/// smallest over gamma of break_even_alpha(gamma, cost).
/// Source:   Leviathan et al. 2023, Corollary 3.9; docs/theory.md#break-even
/// @return empty if no rate below 1 helps
/// @throws std::domain_error if a cost is NaN, negative or infinite
/// Accuracy: relative error <= 1e-12
std::optional<core::AcceptanceRate> break_even_alpha(const core::StepCost& cost);

/// The rate at which a step of gamma drafts takes as long as plain decoding, the root of E[K] = cost(gamma).
/// Source:   docs/theory.md#break-even
/// @param gamma  drafted tokens per step, >= 1
/// @return 0 if the step costs at most 1; empty if it costs more than gamma + 1, so that no rate pays for it
/// @throws std::domain_error if gamma < 1, or a cost is NaN, negative or infinite
/// Accuracy: relative error <= 1e-12 times the conditioning of the root
std::optional<core::AcceptanceRate> break_even_alpha(std::int64_t gamma, const core::StepCost& cost);

}  // namespace specdec::theory
