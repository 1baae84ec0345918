#pragma once

#include <span>

#include "analysis/core/distribution.hpp"
#include "sim/language_model.hpp"

namespace specdec::sim {

/// The token at which the cumulative sum of the probabilities first exceeds u times their total (inverse CDF).
/// Never a token of probability 0, whatever u is and however the sums are rounded.
///
/// Shape:    (vocab); entries >= 0; the total need not be 1, it is divided out.
/// @param u  a uniform number, [0, 1)
/// @throws std::domain_error if the total is not positive and finite
Token sample(std::span<const double> probabilities, double u);

/// Factors of p and q before they are compared, for rules that do not compare them directly.
struct ResidualScale {
  double target = 1;  ///< [0, 1]
  double draft = 1;   ///< [0, 1]
};

/// A token of the residual law norm(max(0, a p - b q)), which corrects a rejected draft; a and b are 1 in Algorithm 1.
/// If a p and b q agree to rounding, so that nothing is left to normalise, a token of p.
///
/// Source:   Leviathan et al. 2023, section 2.3
/// @param u  a uniform number, [0, 1)
/// @throws std::invalid_argument if the two differ in length
Token sample_residual(const core::TargetDistribution& p, const core::DraftDistribution& q, double u,
                      const ResidualScale& scale = {});

/// True if a drafted token of target probability p and draft probability q is kept: u q < p.
///
/// Never true at p = 0; always true at p >= q, p > 0 (q not subnormal).
///
/// Source:   Leviathan et al. 2023, Algorithm 1 (accept with probability min(1, p/q))
/// @param u  a uniform number, [0, 1)
inline bool accepts(double target_probability, double draft_probability, double u) {
  return u * draft_probability < target_probability;
}

}  // namespace specdec::sim
