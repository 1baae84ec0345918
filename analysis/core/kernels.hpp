#pragma once

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"

/// Sums over one pair of next-token distributions, compensated, O(vocab). All of them throw std::invalid_argument if
/// the two rows differ in length; their other inputs were checked when the distributions were constructed.
namespace specdec::core {

/// beta = sum_x min(p(x), q(x)), on the rows as they were stored.
/// Source:   Leviathan et al. 2023, Theorem 3.5
/// @return in [0, 1 + tolerance of the rows]
/// Accuracy: relative error <= 1e-15
double overlap(const TargetDistribution& p, const DraftDistribution& q);

/// The draft's mass that is rejected, sum_x max(0, q(x) - p(x)); 1 - beta where q sums to 1.
/// Source:   Leviathan et al. 2023, Theorem 3.5
/// @return in [0, 1 + tolerance]
/// Accuracy: relative error <= 1e-15
double rejected_mass(const TargetDistribution& p, const DraftDistribution& q);

/// beta as a rate: the rejected mass is passed on as it was summed, never taken as 1 - beta.
/// If the draft's row sums to 1 + d, alpha() differs from overlap() by at most |d|.
/// Source:   Leviathan et al. 2023, Definition 3.1 and Theorem 3.5
/// Accuracy: relative error <= 1e-15 in the smaller of beta and 1 - beta
AcceptanceRate acceptance_rate(const TargetDistribution& p, const DraftDistribution& q);

/// D_LK by its definition, the L1 distance of p to the midpoint (p + q) / 2; the total variation distance.
/// Source:   Leviathan et al. 2023, Definition 3.2
/// @return in [0, 1 + tolerance]; 0 iff p = q, 1 iff the supports are disjoint
/// Accuracy: relative error <= 1e-15
double d_lk(const TargetDistribution& p, const DraftDistribution& q);

}  // namespace specdec::core
