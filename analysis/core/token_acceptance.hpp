#pragma once

#include <span>

namespace specdec::core {

/// a_t = min(1, q_t(x_t) / p_t(x_t)) = exp(min(0, log q - log p)) for every position, in SIMD lanes.
///
/// Source:   docs/theory.md#replay
/// Shape:    three arrays of one length; natural logarithms, log p finite, log q <= 0 or -infinity (then a = 0)
/// @return in [0, 1]; NaN if a logarithm is NaN or both are -infinity
/// @throws std::invalid_argument if the lengths differ
/// Accuracy: relative error <= 1e-15 of the exponential of the exact difference of the two floats
void token_acceptance(std::span<const float> target_logprob, std::span<const float> draft_logprob,
                      std::span<double> acceptance);

}  // namespace specdec::core
