#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/theory/two_state_acceptance.hpp"

namespace specdec::estimate {

/// The counts of how rounds ended: all that the likelihood of acceptance by position needs.
struct RoundEnds {
  /// [n] = rounds whose draft n + 1 was rejected, after n accepted ones.
  std::vector<double> rejected;
  /// [n] = rounds whose n drafts were all accepted.
  std::vector<double> completed;
};

/// Rounds of which a share has one acceptance rate and the others another, high >= low.
struct RoundMixture {
  double high = 1;
  double low = 0;
  double share_high = 1;
};

/// A / (A + R): the best single rate.
/// @return empty if no draft was examined
std::optional<double> one_rate(const RoundEnds& ends);

/// The two rates and the share of rounds that maximise the likelihood of the ends, by expectation maximisation.
///
///   P(rejected after n) = w h^n (1 - h) + (1 - w) l^n (1 - l),   P(completed n) = w h^n + (1 - w) l^n
///
/// If only two positions were examined, three numbers are not determined: the rates are then the mean survival -+
/// its standard deviation over rounds, with equal shares, limited to [0, 1].
/// Source:   docs/theory.md#acceptance-from-counters
/// @return empty if no two rates are more likely than one: rates that fall with the position, or one position
std::optional<RoundMixture> two_rates(const RoundEnds& ends);

/// The same two rates with the share of tokens instead of the share of rounds: a round of rate r that drafts g tokens
/// gives 1 + r + ... + r^g of them.
/// @param share_by_drafted  [g] = share of the rounds that draft g tokens
theory::TwoRates rates_of_tokens(const RoundMixture& rounds, std::span<const double> share_by_drafted);

}  // namespace specdec::estimate
