#pragma once

#include "sim/verifier.hpp"

namespace specdec::sim {

/// Naive token matching: the target samples a token of its own at each drafted position, and a draft stays iff it is
/// that token. Lossless; accepts sum_x p(x) q(x), never more than Algorithm 1.
///
/// Looks at no draft row. The target's token at draft i comes of the uniform (round, i, acceptance), for i = 0..n;
/// after all drafts of (round, gamma, bonus).
///
/// Source:   docs/methods.md#token-matching
Verdict verify_by_matching(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

/// Rejection sampling without iteration: a draft stays with probability p(x) / (M q(x)), M = max_x p(x) / q(x), and is
/// else replaced by a token of p itself. Lossless; accepts 1 / M, never more than Algorithm 1, and nothing where the
/// target's support is not within the draft's.
///
/// The uniforms of verify_tokens.
///
/// Source:   Leviathan et al. 2023, Appendix A.2
Verdict verify_by_rejection_sampling(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

}  // namespace specdec::sim
