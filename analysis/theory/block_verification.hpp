#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/distribution.hpp"

/// Verifying a block of drafts as a whole rather than token by token. The law remains the target's, and of the same
/// drafts no fewer are accepted in expectation.
namespace specdec::theory {

struct BlockAcceptance {
  /// [i - 1] = p_i, the probability that at least i drafts are accepted, given the first i. Shape: (gamma)
  std::vector<double> prefix;
  /// [i - 1] = h_i, the probability that draft i passes its own test. Shape: (gamma)
  std::vector<double> pass;
};

/// The tests of one block. tau, the number of accepted drafts, is the largest i that passes; all are tested, with
/// independent uniforms, and a failure does not end the testing.
///
///   p_0 = 1,   p_i = min(1, p_(i-1) p(x_i) / q(x_i))
///   r_i = sum_x max(0, p_i p(x) - q(x)) over the next position,   h_i = r_i / (r_i + 1 - p_i), 1 if that is 0/0
///   h_gamma = p_gamma
///
/// Source:   Sun et al. 2024 (Block verification); docs/theory.md#block-verification
/// Shape:    target_rows, draft_rows (gamma, vocab), rows sum to 1; row i is the law of draft i + 1, given those before
/// it
/// @param drafts  the gamma tokens drafted, gamma >= 1
/// @throws std::invalid_argument if the sizes disagree or there is no draft
/// @throws std::domain_error if a row is invalid, or a draft is outside the vocabulary or has draft probability 0
/// Accuracy: relative error <= 1e-14 gamma
BlockAcceptance block_acceptance(std::span<const double> target_rows, std::span<const double> draft_rows,
                                 std::size_t vocab, std::span<const std::int64_t> drafts);

/// P(tau = i | the drafts), i = 0..gamma: h_i (1 - h_(i+1)) ... (1 - h_gamma) with h_0 = 1.
/// Source:   docs/theory.md#block-verification
std::vector<double> accepted_drafts_law(const BlockAcceptance& block);

}  // namespace specdec::theory
