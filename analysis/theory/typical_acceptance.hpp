#pragma once

#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"

/// Typical acceptance: a draft is accepted if the target finds it likely enough, given the target's certainty. Lossy.
namespace specdec::theory {

/// The rule accepts x iff p(x) > min(epsilon, delta exp(-H(p))). With delta < 1 it accepts the most probable token of
/// p.
struct TypicalRule {
  double epsilon = 0.09;  ///< [0, 1]
  double delta = 0.3;     ///< [0, 1]
};

/// H(p) = -sum_x p(x) ln p(x), in nats, 0 ln 0 = 0.
/// Accuracy: relative error <= 1e-14
double entropy_nats(const core::TargetDistribution& p);

/// min(epsilon, delta exp(-H(p))). All functions here throw std::domain_error if a field of the rule is out of range.
/// Source:   Cai et al. 2024 (Medusa)
/// Accuracy: relative error <= 1e-14
double typical_threshold(const core::TargetDistribution& p, const TypicalRule& rule);

/// Acceptance of a draft sampled from q: the draft's mass on the accepted tokens.
/// Source:   docs/theory.md#typical-acceptance
/// @throws std::invalid_argument if the rows differ in length
/// Accuracy: relative error <= 1e-14 in the smaller of it and its complement
core::AcceptanceRate typical_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                        const TypicalRule& rule);

/// The law of a drafted position's token if a rejected draft is replaced by a sample of p, like the next step's first
/// token:
///
///   o(x) = q(x) [p(x) > threshold] + (1 - acceptance) p(x)
///
/// Source:   docs/theory.md#typical-acceptance
/// @return one probability per token, summing to 1
/// @throws std::invalid_argument if the rows differ in length
/// Accuracy: relative error <= 1e-14 per entry
std::vector<double> typical_output(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                   const TypicalRule& rule);

/// Total variation distance of typical_output from p.
/// Source:   docs/theory.md#typical-acceptance
/// @return in [0, 1]
/// @throws std::invalid_argument if the rows differ in length
/// Accuracy: absolute error <= 1e-15
double typical_distance(const core::TargetDistribution& p, const core::DraftDistribution& q, const TypicalRule& rule);

}  // namespace specdec::theory
