#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {

/// When a step stops drafting: after `gamma` tokens, or after the first token for which its probability under the
/// draft, or the product of those of the step so far, is below a threshold. That token is submitted. 0 never stops.
struct DraftingLimit {
  std::int64_t gamma = 5;  ///< >= 0
  double token_threshold = 0;
  double product_threshold = 0;
};

/// The exact expected number of steps over recorded texts, for a policy that looks at the draft's probabilities of the
/// tokens that it sampled. Accepted drafts are the text itself, so the number of tokens that the
/// step from t may draft is known from the recording: L(t). A rejection ends the step whatever was drafted after it.
///
///   u(0) = 1;   u(t + 1) = sum over the steps s in progress at t of w_s(t) (1 - a_t [t - s < L(s)])
///   w_s(s) = u(s);   w_s(t + 1) = w_s(t) a_t while t - s < L(s);   E[steps] = sum_t u(t)
///
/// Source:   docs/theory.md#adaptive-drafting
/// Assumes:  the draft depends on the prefix and the depth alone; verification is lossless, token by token.
/// Time:     O(gamma) per token, memory O(gamma)
/// Accuracy: relative error <= 1e-12
class PolicyReplay {
 public:
  /// @throws std::domain_error if a field is out of range
  explicit PolicyReplay(const DraftingLimit& limit);

  /// Adds the next positions; a change of the sequence's number begins a new text.
  /// Shape: sequence (positions), acceptance (positions, depths), draft_probability (positions), or empty if no
  /// threshold needs it. Depth j + 1 of a step uses column min(j, depths - 1).
  /// @throws std::invalid_argument if sizes disagree
  /// @throws std::domain_error if an acceptance that is used, or a probability, is NaN or outside [0, 1]
  void add(std::span<const std::int64_t> sequence, std::span<const double> acceptance, std::int64_t depths,
           std::span<const double> draft_probability);

  /// Over all texts so far, including the current one.
  double expected_steps() const { return steps_.value(); }

 private:
  struct Step {
    double weight;
    double product;
    std::int64_t drafted;
    bool stopped;
  };

  void take(std::span<const double> acceptance, double draft_probability);

  DraftingLimit limit_;
  core::CompensatedSum steps_;
  std::optional<std::int64_t> sequence_;
  double starts_ = 0;  // u(t)
  std::deque<Step> under_way_;
};

}  // namespace specdec::theory
