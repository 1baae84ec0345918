#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Acceptance that depends on a hidden state of the text: easy and hard stretches.
namespace specdec::theory {

/// Two states of the text, one for every token; the state of the next token depends only on the current one.
struct TwoStateChain {
  /// P(a draft is accepted) in the first and the second state, [0, 1].
  double beta_first = 1;
  double beta_second = 1;
  /// P(the next token is in the other state), [0, 1].
  double leave_first = 0;
  double leave_second = 0;
};

/// Law of the first and the second state; sums to 1.
using StateLaw = std::array<double, 2>;

/// Steps of fixed or varying gamma over text whose acceptance a two-state chain modulates, in the long run.
///
///   A = diag(beta) P,   survival(j) = nu A^j 1,   E[K] = sum_{j=0}^{gamma} survival(j)
///   T = sum_{k<gamma} A^k (I - diag(beta)) P + A^gamma P,   nu = nu T
///
/// Steps start after rejections more often than elsewhere, so nu is not the stationary law of P, and it depends on
/// gamma: hazards measured at one gamma are not those at another.
/// Source:   docs/theory.md#two-acceptance-states
/// Assumes:  the states do not depend on what is drafted; acceptances independent given the states.
class TwoStateAcceptance {
 public:
  /// @throws std::domain_error if a probability is NaN or outside [0, 1], or both states are never left: the long run
  ///         then depends on the start
  explicit TwoStateAcceptance(const TwoStateChain& chain);

  const TwoStateChain& chain() const { return chain_; }
  /// The long-run law of the state over tokens.
  StateLaw stationary() const;
  /// Mean acceptance over tokens, [0, 1].
  double alpha() const;
  /// Limit of expected_tokens for gamma -> infinity: 1 / (1 - alpha), whatever the correlation; infinity at alpha = 1.
  double expected_tokens_limit() const;

  /// nu: the law of the state in which a step starts.
  /// @param gamma  drafted tokens per step, >= 0
  /// @throws std::domain_error if gamma < 0
  StateLaw round_starts(std::int64_t gamma) const;
  /// The same if gamma varies from step to step, independently of the states.
  /// @param share_by_gamma  [g] = share of steps that draft g tokens; >= 0, sum 1
  /// @throws std::domain_error if it is not a law
  StateLaw round_starts(std::span<const double> share_by_gamma) const;

  /// [j - 1] = P(at least j drafts accepted) for j = 1..positions, of steps that start by a law and draft that far.
  /// @param positions  >= 0
  std::vector<double> survival(const StateLaw& start, std::int64_t positions) const;
  /// [j - 1] = P(draft j accepted | all before it accepted), measured by steps of gamma; 0 after a survival of 0.
  /// @param gamma  >= 0
  std::vector<double> hazards(std::int64_t gamma) const;

  /// E[K], the target's own token included, in [1, gamma + 1].
  /// @param gamma  drafted tokens per step, >= 0
  /// @throws std::domain_error if gamma < 0
  /// Accuracy: relative error <= 1e-12 for gamma <= 1000, and growing with gamma beyond: <= 1e-15 gamma
  double expected_tokens(std::int64_t gamma) const;
  /// P(all gamma drafts accepted), [0, 1].
  double full_accepts(std::int64_t gamma) const;

 private:
  TwoStateChain chain_;
};

/// Two rates and the share of tokens that have the first: all that a two-state chain implies for steps. States that are
/// never left are the simple case: requests of one rate and requests of another.
///
///   1 / E_gamma = share_high / E(high, gamma) + (1 - share_high) / E(low, gamma),   E(r, gamma) = sum_{j<=gamma} r^j
///
/// Source:   docs/theory.md#two-acceptance-states
struct TwoRates {
  double high = 1;
  double low = 0;
  /// The share of tokens.
  double share_high = 1;
};

/// The eigenvalues of A and their weights: the two rates under which steps of any gamma have the same survival
/// as under the chain. In [0, 1] if states persist (leave_first + leave_second <= 1); else `low` is negative and
/// the share may exceed 1.
/// @return empty if A does not have two eigenvectors
/// @throws std::domain_error as TwoStateAcceptance
std::optional<TwoRates> two_rates(const TwoStateChain& chain);

/// E[K], in [1, gamma + 1].
/// @param gamma  drafted tokens per step, >= 0
/// @throws std::domain_error if gamma < 0
/// Accuracy: relative error <= 1e-13 for rates and share in [0, 1]
double expected_tokens(const TwoRates& rates, std::int64_t gamma);

/// The share of steps that have the first rate: that of tokens over E(high, gamma), normalised.
/// @param gamma  drafted tokens per step, >= 0
double share_of_rounds(const TwoRates& rates, std::int64_t gamma);

/// P(at least j drafts accepted) in steps of gamma, if they drafted that far.
/// @param gamma, j  >= 0
double survival(const TwoRates& rates, std::int64_t gamma, std::int64_t j);

}  // namespace specdec::theory
