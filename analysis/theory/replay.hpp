#pragma once

#include <cstdint>
#include <span>

/// The exact law of speculative decoding over a recorded text. Given a text sampled from the target, its token t is
/// accepted as a draft with probability a_t = min(1, q_t(x_t) / p_t(x_t)), independently given the text; so the steps
/// that cover the text have a law that depends on a_0, ..., a_(T-1) and gamma alone. For texts of any length and many
/// gammas at once: streaming_replay.hpp.
///
/// Shape everywhere: acceptance (T), one a_t in [0, 1] per token of the text. T = 0 takes 0 steps. Every function
/// throws std::domain_error, naming the position, if an entry is NaN or outside [0, 1], or if gamma < 0.
namespace specdec::theory {

struct ReplayedSteps {
  double expected = 0;  ///< steps
  double variance = 0;  ///< steps^2
};

/// Mean and variance of the number of steps that cover the text.
///
///   N(t)   = 1 + sum_k P(k | t) N(t + k),   N(t >= T) = 0
///   Var(t) = sum_k P(k | t) (Var(t + k) + (1 + N(t + k) - N(t))^2)
///
/// k = tokens emitted from position t: P(k | t) = a_t ... a_(t+k-2) (1 - a_(t+k-1)) for k <= gamma, and
/// a_t ... a_(t+gamma-1) for k = gamma + 1.
///
/// Source:   docs/theory.md#replay
/// Assumes:  the draft depends on the prefix alone; verification is lossless, token by token.
/// @param gamma  drafted tokens per step, >= 0; time O(T min(gamma, T)), memory O(T)
/// Accuracy: relative error <= 1e-12
ReplayedSteps replay_steps(std::span<const double> acceptance, std::int64_t gamma);

/// The same if the step from t drafts at most limits[t] tokens, as for a policy that looks at the drafted tokens,
/// and draft j + 1 of a step is accepted with a_(t, min(j, depths - 1)).
/// Source:   docs/theory.md#adaptive-drafting
/// Shape: limits (T), each >= 0; acceptance (T, depths), row-major
/// @param depths  >= 1
/// @throws std::invalid_argument if the sizes disagree
/// Accuracy: relative error <= 1e-12
ReplayedSteps replay_steps_within(std::span<const double> acceptance, std::int64_t depths,
                                  std::span<const std::int64_t> limits);

}  // namespace specdec::theory
