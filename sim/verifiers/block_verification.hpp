#pragma once

#include "sim/verifier.hpp"

namespace specdec::sim {

/// Block verification: the drafts of a round are judged together, and more of them are kept in expectation than under
/// Algorithm 1. Lossless.
///
///   P_0 = 1;   P_i = min(1, P_(i-1) p_i(x_i) / q_i(x_i))
///   r_i = sum_x max(0, P_i p(x | x_1..x_i) - q(x | x_1..x_i));   h_i = r_i / (r_i + 1 - P_i), 0/0 = 1;   h_gamma =
///   P_gamma accepted = the largest i with u_i < h_i, or 0 extra ~ norm(max(0, P_n p_n - q_n)) if n < gamma, else
///   p_gamma
///
/// Every position is tested, even after a failed one, so that a later draft decides about an earlier
/// one. Uses the uniforms (round, i - 1, acceptance) for i = 1..gamma, then (round, n, residual) or (round, gamma,
/// bonus). The uniforms of discarded drafts must not be used again: keyed by the position in the text, they
/// would bias the law.
///
/// Source:   Sun et al. 2024, "Block verification accelerates speculative decoding"; docs/reference/methods.md#block-verification
Verdict verify_block(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

}  // namespace specdec::sim
