#pragma once

#include <span>

#include "sim/decoding.hpp"

namespace specdec::test_support {

/// A mistake that a speculative decoder can make without failing visibly.
enum class Defect {
  none,
  residual_not_subtracted,   ///< a rejection is corrected from p instead of norm(max(0, p - q))
  acceptance_without_ratio,  ///< a draft is kept with probability p(x) instead of min(1, p(x)/q(x))
  bonus_from_draft,          ///< the token after a full accept comes from the draft, at the right prefix
  bonus_from_wrong_prefix,   ///< the token after a full accept comes from the target, one position too early
  uniform_used_twice,        ///< a draft's acceptance test uses the uniform that the draft was sampled with
  one_uniform_per_position   ///< a correction uses the uniform that the rejected draft was sampled with
};

/// decode_speculatively with one defect built in; the same signature, the same use of both models.
/// `options.verifier` is replaced.
sim::Generation decode_with_defect(Defect defect, sim::LanguageModel& target, sim::LanguageModel& draft,
                                   std::span<const sim::Token> prompt, sim::DecodingOptions options,
                                   const sim::UniformSource& uniforms);

}  // namespace specdec::test_support
