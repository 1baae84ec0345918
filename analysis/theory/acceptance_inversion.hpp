#pragma once

#include <cstdint>
#include <span>

#include "analysis/core/acceptance_profile.hpp"

/// From the figures that serving engines report to acceptance rates. Lengths are tokens per step, the target's own
/// (bonus or correction) token included; an engine that reports only accepted drafts reports one less.
namespace specdec::theory {

/// The rate whose expected tokens at gamma are the given length: the root of sum_{j=1}^{gamma} alpha^j = length - 1.
/// Source:   docs/theory.md#acceptance-inversion
/// Assumes:  acceptances i.i.d.
/// @param tokens_per_step  acceptance length, in [1, gamma + 1]
/// @param gamma            drafted tokens per step at which it was measured, >= 1
/// @throws std::domain_error if gamma < 1, or the length is NaN or outside its range; the message names both
///         conventions, with and without the bonus token
/// Accuracy: expected_tokens(result, gamma) differs by at most 1e-13 relative
core::AcceptanceRate alpha_from_acceptance_length(double tokens_per_step, std::int64_t gamma);

struct InvertedProfile {
  core::AcceptanceProfile profile;
  /// False if the input is not a survival function: some survival would exceed the one before it or be negative. The
  /// profile then holds the nearest legal value at those positions.
  bool monotone = true;
};

/// Survival from unconditional rates per position, P(at least j drafts accepted), as vLLM reports them.
/// Source:   docs/theory.md#acceptance-inversion
/// @param rates  position 1, 2, ...; at least one, each in [0, 1]
/// @throws std::invalid_argument if rates is empty
/// @throws std::domain_error if a rate is NaN or outside [0, 1]; the position is named
InvertedProfile profile_from_unconditional_rates(std::span<const double> rates);

/// Survival from conditional rates per position, P(draft j accepted | all before it accepted).
/// Source:   docs/theory.md#acceptance-inversion
/// @param rates  position 1, 2, ...; at least one, each in [0, 1]
/// @throws std::invalid_argument if rates is empty
/// @throws std::domain_error if a rate is NaN or outside [0, 1]; the position is named
core::AcceptanceProfile profile_from_conditional_rates(std::span<const double> rates);

}  // namespace specdec::theory
