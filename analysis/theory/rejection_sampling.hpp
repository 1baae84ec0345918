#pragma once

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"

/// The alternatives to speculative sampling that the paper compares with. Both throw std::invalid_argument if the two
/// rows differ in length.
namespace specdec::theory {

/// Acceptance of non-iterative rejection sampling: a draft x is accepted with probability p(x) / (M q(x)).
///
///   1 / M = min_{x: p(x) > 0} q(x) / p(x), at most beta
///
/// Source:   Leviathan et al. 2023, Appendix A.2
/// @return in [0, 1]; 0 if some token of the target's support has no draft mass, so that M is infinite
/// Accuracy: relative error <= 1e-15
double rejection_sampling_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q);

/// Acceptance if a token sampled from p is compared with the draft: sum_x p(x) q(x).
/// Source:   docs/theory.md#rejection-sampling
/// @return in [0, 1]
/// Accuracy: relative error <= 1e-15
double matching_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q);

}  // namespace specdec::theory
