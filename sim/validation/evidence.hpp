#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/generation.hpp"
#include "sim/random.hpp"

namespace specdec::validation {

/// An emitted token as the distribution test sees it.
struct PlacedToken {
  /// 1-based place in its round; drafted + 1 is the bonus.
  std::int64_t slot = 0;
  /// Its probability integral transforms, tokens ordered by q/p and by p.
  double by_ratio = 0;
  double by_probability = 0;
};

/// A sum of independent or martingale terms and its expectation in theory.
struct Comparison {
  double expected = 0;
  double measured = 0;
  double variance = 0;

  void add(const Comparison& other);
};

/// The evidence in the finished text of one sequence, by distributions computed afresh: only the text itself
/// and the lengths of the rounds come from the decoder.
struct Evidence {
  std::vector<PlacedToken> tokens;
  /// beta_t = sum min(p_t, q_t) and a_t = min(1, q_t(x_t) / p_t(x_t)) at every emitted token.
  std::vector<double> betas;
  std::vector<double> acceptances;
  /// Drafts accepted among those examined, against the sum of their prefixes' betas.
  Comparison accepted;
  /// Sum of a_t over the text against the sum of betas.
  Comparison emitted_acceptance;
  /// Emitted tokens to which the target gives probability 0: even one proves the sampler wrong.
  std::int64_t impossible_tokens = 0;
};

/// Re-scores a generated text with both models, in blocks, and collects what the tests need.
///
/// @param prompt          the decoder's input, at least one token
/// @param generation      its result; the steps' `emitted` add up to the text's length
/// @param standardisation that of both models
/// @param uniforms        the sequence's own; the transforms use (token, 0, test)
/// @throws std::logic_error if steps and text do not match
Evidence gather_evidence(sim::LanguageModel& target, sim::LanguageModel& draft, std::span<const sim::Token> prompt,
                         const sim::Generation& generation, const core::Standardisation& standardisation,
                         const sim::UniformSource& uniforms);

}  // namespace specdec::validation
