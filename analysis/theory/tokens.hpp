#pragma once

#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"

/// Tokens produced by one speculative step. K is the number of tokens, the target's own token included: 1..gamma + 1.
/// A core::AcceptanceRate converts to a profile, so each function takes alpha as well as per-position acceptances.
namespace specdec::theory {

/// Expected tokens produced by one speculative step.
///
///   E[K] = sum_{j=0}^{gamma} survival(j);   (1 - alpha^(gamma+1)) / (1 - alpha) for one rate, gamma + 1 at alpha = 1.
///
/// Source:   Leviathan et al. 2023, Eq. (1); docs/theory.md#expected-tokens
/// Assumes:  acceptances i.i.d. with rate alpha, or independent with the profile's conditional rates.
/// @param gamma  drafted tokens per step, >= 0
/// @return tokens per step, in [1, gamma + 1]
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double expected_tokens(const core::AcceptanceProfile& acceptance, std::int64_t gamma);

/// The limit of expected_tokens for gamma -> infinity: 1 / (1 - alpha) for one rate.
/// Source:   Leviathan et al. 2023, Section 3.2
/// @return tokens per step, >= 1; infinity at alpha = 1 or if the value exceeds the range of double
/// Accuracy: relative error <= 1e-13
double expected_tokens_limit(const core::AcceptanceProfile& acceptance);

/// P(K = tokens): the capped geometric distribution for one rate,
///
///   alpha^(k-1) (1 - alpha) for k = 1..gamma;   alpha^gamma for k = gamma + 1.
///
/// Source:   Leviathan et al. 2023, Section 3.1
/// @param gamma   drafted tokens per step, >= 0
/// @param tokens  k, in [1, gamma + 1]
/// @throws std::domain_error if gamma < 0 or tokens is outside its range
/// Accuracy: relative error <= 1e-13
double tokens_probability(const core::AcceptanceProfile& acceptance, std::int64_t gamma, std::int64_t tokens);

/// Variance of K, evaluated without cancellation.
///
///   Var[K] = (alpha - (2 gamma + 1)(1 - alpha) alpha^(gamma+1) - alpha^(2 gamma+2)) / (1 - alpha)^2
///
/// Source:   docs/theory.md#variance-of-tokens
/// Assumes:  acceptances i.i.d. with rate alpha.
/// @param gamma  drafted tokens per step, >= 0
/// @return tokens^2, >= 0
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double tokens_variance(const core::AcceptanceRate& rate, std::int64_t gamma);

/// d E[K] / d alpha = sum_{j=1}^{gamma} j alpha^(j-1), evaluated without cancellation.
///
/// Source:   docs/theory.md#variance-of-tokens
/// @param gamma  drafted tokens per step, >= 0
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double expected_tokens_derivative(const core::AcceptanceRate& rate, std::int64_t gamma);

}  // namespace specdec::theory
