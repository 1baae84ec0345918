#pragma once

#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"

namespace specdec::theory {

/// Expected factor by which the number of arithmetic operations grows.
///
///   (gamma c_hat + gamma + 1) / E[K]
///
/// Source:   Leviathan et al. 2023, Theorem 3.11
/// @param gamma  drafted tokens per step, >= 0
/// @param c_hat  draft operations per token / target operations per token, dimensionless, >= 0
/// @return >= 1; infinity if the value exceeds the range of double
/// @throws std::domain_error if gamma < 0, or c_hat is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double operations_factor(const core::AcceptanceProfile& acceptance, std::int64_t gamma, double c_hat);

/// Factor by which the reads of the target's weights and key-value cache shrink: 1 / E[K].
///
/// Source:   Leviathan et al. 2023, Section 3.4
/// @param gamma  drafted tokens per step, >= 0
/// @return in [1 / (gamma + 1), 1]
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double memory_access_factor(const core::AcceptanceProfile& acceptance, std::int64_t gamma);

/// Fraction of the gamma + 1 positions scored by the target whose results are discarded.
///
///   1 - E[K] / (gamma + 1) = sum_{j=1}^{gamma} (1 - survival(j)) / (gamma + 1)
///
/// Source:   docs/theory.md#operations
/// @param gamma  drafted tokens per step, >= 0
/// @return in [0, gamma / (gamma + 1)]
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13
double wasted_fraction(const core::AcceptanceProfile& acceptance, std::int64_t gamma);

}  // namespace specdec::theory
