#pragma once

#include "sim/validation/methods.hpp"

/// The policy known-beta: a text is written by the target alone, its cheapest drafting is found by the dynamic
/// program of analysis/theory/known_acceptance.hpp, which knows every draft's acceptance probability beforehand, and
/// the rounds are then played over it, each draft being accepted with its probability. That is Algorithm 1's law
/// (replay); no policy that decides from the past alone is cheaper.
namespace specdec::validation {

std::string lacks_known_beta(const MethodContext& context, const VerifierKind& verifier);
MethodDecoderFactory prepare_known_beta(const MethodContext& context, const VerifierKind& verifier,
                                        const DraftBenchFactory& benches);

}  // namespace specdec::validation
