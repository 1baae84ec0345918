#pragma once

#include "sim/verifier.hpp"

namespace specdec::sim {

/// Naive token matching: the target samples a token of its own at each drafted position, and a draft is kept iff it is
/// that token. Lossless; accepts sum_x p(x) q(x), never more than Algorithm 1.
///
/// Uses no draft row. The target's token at draft i is drawn by the uniform (round, i, acceptance), for i = 0..n;
/// after all drafts by (round, gamma, bonus).
///
/// Source:   docs/reference/methods.md#token-matching
Verdict verify_by_matching(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

/// Rejection sampling without iteration: a draft is kept with probability p(x) / (M q(x)), M = max_x p(x) / q(x), and
/// otherwise replaced by a token of p itself. Lossless; accepts 1 / M, never more than Algorithm 1, and nothing if the
/// target's support is not within the draft's.
///
/// Uses the uniforms of verify_tokens.
///
/// Source:   Leviathan et al. 2023, Appendix A.2
Verdict verify_by_rejection_sampling(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

}  // namespace specdec::sim
