#pragma once

#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"
#include "analysis/core/step_cost.hpp"

/// Drafts other than a smaller autoregressive model: Leviathan et al. 2023, Section 3.6, and what it suggests.
/// A function throws std::domain_error if a parameter is NaN or out of its range.
namespace specdec::theory {

/// Speedup of a draft that finds something to propose in a share of the steps, such as one that copies from the
/// context; the other steps are plain decoding. The acceptance of one copied token x is p(x), and the residual is p
/// without x.
///
///   (m E[K] + 1 - m) / (m cost(gamma) + 1 - m)
///
/// Source:   docs/theory.md#other-drafts
/// Assumes:  whether something is found, and what is accepted, independent from step to step.
/// @param match_rate  m, share of steps, [0, 1]
/// @param acceptance  acceptance of the tokens copied in the steps with a match
/// @param gamma       tokens copied, >= 0
/// Accuracy: relative error <= 1e-13
double copying_speedup(double match_rate, const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                       const core::StepCost& cost = {});

/// Speedup of a draft that proposes all its tokens in one call, with c the time of that call / target step time:
///
///   E[K] / (v(gamma + 1) + c + overhead)
///
/// With v = 1 it grows with gamma: all proposed tokens are used.
/// Source:   Leviathan et al. 2023, Section 3.6 (non-autoregressive models); docs/theory.md#other-drafts
/// @param gamma  tokens proposed, >= 0; 0 is plain decoding
/// Accuracy: relative error <= 1e-13
double parallel_draft_speedup(const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                              const core::StepCost& cost);

}  // namespace specdec::theory
