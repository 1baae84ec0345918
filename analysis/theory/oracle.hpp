#pragma once

#include <cstdint>

#include "analysis/core/acceptance_rate.hpp"

/// A draft length chosen by an oracle that knows how many drafts will be accepted.
namespace specdec::theory {

/// Expected tokens per step of the oracle, 1 / (1 - alpha).
/// Source:   Leviathan et al. 2023, Section 3.5
/// @return >= 1; infinity at alpha = 1 or if the value exceeds the range of double
/// Accuracy: relative error <= 1e-13
double oracle_tokens(const core::AcceptanceRate& rate);

/// Wall-time improvement of the oracle, which drafts exactly the tokens that will be accepted:
///
///   1 / (1 - alpha + alpha c)
///
/// Source:   Leviathan et al. 2023, Section 3.5; docs/theory.md#oracle
/// @param c  draft step time / target step time, dimensionless, >= 0
/// @return >= 1 for c <= 1; infinity if the value exceeds the range of double
/// @throws std::domain_error if c is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double oracle_speedup(const core::AcceptanceRate& rate, double c);

/// oracle_speedup over the speedup of one fixed gamma; at c = 0 it is 1 / (1 - alpha^(gamma+1)).
/// Source:   docs/theory.md#oracle
/// @param gamma  drafted tokens per step, >= 0
/// @param c      draft step time / target step time, dimensionless, >= 0
/// @throws std::domain_error if gamma < 0, or c is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double oracle_improvement(const core::AcceptanceRate& rate, std::int64_t gamma, double c);

/// oracle_speedup over the speedup of the best fixed gamma (over its supremum if none is attained, which gives 1):
/// the paper's figure for it is up to "~60%".
/// Source:   Leviathan et al. 2023, Section 3.5; docs/theory.md#oracle
/// @param c  draft step time / target step time, dimensionless, >= 0
/// @return >= 1 for c <= 1
/// @throws std::domain_error if c is NaN, negative or infinite
/// Accuracy: relative error <= 1e-13
double oracle_improvement(const core::AcceptanceRate& rate, double c);

}  // namespace specdec::theory
