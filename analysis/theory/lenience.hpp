#pragma once

#include <cstddef>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"

/// Lenience trades the exact output distribution for a higher acceptance: Leviathan et al. 2023, Appendix A.5.
/// `lenience` is the paper's l, in (0, 1]; l = 1 is the strict rule. Every function throws std::domain_error if it is
/// NaN or outside, and std::invalid_argument if the rows differ in length.
namespace specdec::theory {

/// The replacement of a rejected draft; the paper leaves it open.
enum class LenientResidual {
  strict,   ///< norm(max(0, p - q)): Algorithm 1's residual is kept
  lenient,  ///< norm(max(0, p - l q))
};

/// Acceptance if q is multiplied by l before it is compared with p:
///
///   alpha_l = sum_x min(p(x) / l, q(x))
///
/// Source:   Leviathan et al. 2023, Appendix A.5
/// Accuracy: relative error <= 1e-15 in the smaller of alpha_l and 1 - alpha_l
core::AcceptanceRate lenient_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                        double lenience);

/// The distribution of a drafted position's token.
///
///   strict:   o = min(p / l, q) + (1 - alpha_l) norm(max(0, p - q))
///   lenient:  o = min(p / l, q) + (1 - alpha_l) norm(max(0, p - l q))
///
/// Both satisfy o <= p / l.
/// Source:   docs/theory.md#lenience
/// @return one probability per token, summing to 1
/// Accuracy: relative error <= 1e-13 per entry
std::vector<double> lenient_output(const core::TargetDistribution& p, const core::DraftDistribution& q, double lenience,
                                   LenientResidual residual);

/// Total variation distance of lenient_output from p; alpha_l - alpha_1 for the strict residual, which is the smallest
/// that any rule with this acceptance can have, and at least that for the lenient one. Source: docs/theory.md#lenience
/// @return in [0, 1]
/// Accuracy: absolute error <= 1e-15, relative error <= 1e-13 for the strict residual
double lenient_distance(const core::TargetDistribution& p, const core::DraftDistribution& q, double lenience,
                        LenientResidual residual);

/// Long-run fraction of the generated tokens that are distributed exactly as p: those that follow a step with all
/// drafts accepted, alpha_l^gamma / E[K]. The law of a sequence therefore depends on gamma.
/// Source:   docs/theory.md#lenience
/// @param gamma  drafted tokens per step, >= 0
/// @return in [0, 1]; 1 at gamma = 0
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double exact_token_fraction(const core::AcceptanceRate& lenient_rate, std::int64_t gamma);

/// Lenience at temperature 0: the draft's token is accepted iff p(token) >= l max p. The paper prints "<=", under
/// which l = 1 would accept everything.
/// Source:   Leviathan et al. 2023, Appendix A.5, with its inequality reversed
/// @param draft_token  the draft's argmax, < vocab
/// @throws std::domain_error if draft_token is outside the vocabulary
bool argmax_lenient_accepts(const core::TargetDistribution& p, std::size_t draft_token, double lenience);

}  // namespace specdec::theory
