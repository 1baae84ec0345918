#pragma once

#include <cstdint>
#include <vector>

/// Draft lengths if the draft itself can tell how likely its tokens are to be accepted. Times are in target
/// steps; a step of g drafts takes 1 + c g.
namespace specdec::theory {

/// Acceptance of one drafted token: values[i] with probability weights[i], independently from token to token.
/// Every function throws std::invalid_argument if the two are empty or differ in length, and std::domain_error if an
/// entry is NaN or outside [0, 1], the weights do not sum to 1 within 1e-9, c is NaN, negative or infinite, max_gamma
/// is outside [0, longest_adaptive_step], or more than 1e6 products of values must be distinguished.
struct VaryingAcceptance {
  std::vector<double> values;
  std::vector<double> weights;

  /// alpha = sum_i weights[i] values[i].
  double mean() const;
};

inline constexpr std::int64_t longest_adaptive_step = 10'000;

/// The long-run averages of a policy's step.
struct AdaptiveStep {
  double tokens;    ///< E[K], the target's own token included
  double drafted;   ///< expected drafts
  double cost;      ///< 1 + c drafted
  double speedup;   ///< tokens / cost
  double at_limit;  ///< P(a step drafts max_gamma tokens)
};

/// Stops after the token at which S, the product of the acceptances of the step's drafts, falls below `threshold`: when
/// some rejection has become likelier than 1 - threshold. That token is submitted. 0 never stops.
/// Source:   Huang et al. 2024 (SpecDec++), the form of its rule; docs/theory.md#when-to-stop-drafting
/// @param threshold  [0, 1]
/// Accuracy: relative error <= 1e-12
AdaptiveStep survival_threshold_step(const VaryingAcceptance& acceptance, double c, double threshold,
                                     std::int64_t max_gamma);

/// Stops after the first token whose own acceptance is below `threshold`. That token is submitted. 0 never stops.
/// Source:   docs/theory.md#when-to-stop-drafting
/// @param threshold  [0, 1]
/// Accuracy: relative error <= 1e-12
AdaptiveStep confidence_threshold_step(const VaryingAcceptance& acceptance, double c, double threshold,
                                       std::int64_t max_gamma);

/// The information that a policy has when it decides on another draft.
enum class DraftForesight {
  drafted,  ///< the acceptances of the tokens drafted so far
  next,     ///< also that of the next token
};

struct BestStopping {
  AdaptiveStep step;
  /// Drafting continues while S is above this: S of the drafts so far, or with the next one. lambda c / alpha, or
  /// lambda c, with lambda the largest speedup.
  double survival_threshold;
};

/// The policy with the largest speedup. One more draft is worth S alpha (or S with it) tokens and costs c, and S does
/// not rise, so that
///
///   continue while S alpha > lambda c (S > lambda c),   lambda = max E[K] / E[cost]
///
/// is optimal among all rules that stop by the available information; lambda by Dinkelbach's iteration, which ends.
/// Source:   docs/theory.md#when-to-stop-drafting
/// Accuracy: relative error <= 1e-12 of the speedup
BestStopping best_stopping(const VaryingAcceptance& acceptance, double c, DraftForesight foresight,
                           std::int64_t max_gamma);

}  // namespace specdec::theory
