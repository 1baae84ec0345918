#pragma once

#include "sim/verifier.hpp"

/// Rules that accept more than the target's law allows. Each changes the text's law; docs/reference/methods.md says how far.
namespace specdec::sim {

/// The replacement of a leniently rejected draft; the paper leaves it open.
enum class LenientResidual {
  strict,  ///< norm(max(0, p - q)): Algorithm 1's residual, the smallest change of law at this acceptance
  lenient  ///< norm(max(0, p - l q))
};

/// Algorithm 1 with q multiplied by a lenience l before the comparison: accept iff u l q(x) < p(x). At a drafted
/// position no token has more than p(x) / l. The token after a full accept is the target's own, and the uniforms are
/// those of verify_tokens. l = 1 is verify_tokens.
///
/// Source:   Leviathan et al. 2023, Appendix A.5
/// @param lenience  l, (0, 1]
/// @throws std::domain_error if the lenience is out of range
Verifier lenient_verifier(double lenience, LenientResidual residual);

/// Lenience for greedy text: a draft is kept iff p(x) >= l max p, and otherwise replaced by argmax p, as is the token
/// after a full accept (the lowest in a tie). l = 1 is greedy decoding, up to ties. No randomness. The target's rows
/// must be the model's own, not those of temperature 0, or every l acts like 1. Decode with temperature 1 and greedy
/// proposals.
///
/// Source:   Leviathan et al. 2023, Appendix A.5, with its inequality reversed
/// @param lenience  l, (0, 1]
/// @throws std::domain_error if the lenience is out of range
Verifier lenient_argmax_verifier(double lenience);

/// Typical acceptance: a draft is kept iff the target finds it not too improbable for a row of this entropy, whatever
/// the draft's probability; otherwise a token of p follows.
///
///   accept iff p(x) > min(epsilon, delta exp(-H(p))),   H(p) = -sum_x p(x) ln p(x)
///
/// Uses the uniforms (round, n, residual) or (round, gamma, bonus).
///
/// Source:   Cai et al. 2024, "Medusa", section 2.3.1
/// @param epsilon  [0, 1]
/// @param delta    [0, 1]
/// @throws std::domain_error if a parameter is out of range
Verifier typical_verifier(double epsilon, double delta);

}  // namespace specdec::sim
