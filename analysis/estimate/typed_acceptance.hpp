#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/population_curve.hpp"

/// Acceptance from hand-typed numbers: rounded, for few draft lengths, and queried at others.
namespace specdec::estimate {

/// Tokens per step at one draft length, as typed.
struct TypedLength {
  std::int64_t gamma = 1;      ///< >= 1
  double tokens_per_step = 1;  ///< bonus token included, [1, gamma + 1]
  /// Largest rounding error of the number; 0 if it was not rounded.
  double half_unit = 0;
};

/// The ratio of a conditional acceptance rate to that of the draft before it, if unknown: rate_(j+1) = ratio rate_j, at
/// most 1.
///
/// The fitted ratios of published lengths by K and rates by position, each carried from 3 drafts to its last one (5 to
/// 8 drafts): two MTP modules .69 and .70, ten DSpark and EAGLE-3 curves .87, .90, .92, .94, .96, .96, .98, .98,
/// .99 and 1.00; their median is .95. Rates of n-grams looked up in the text rise: from 3 drafts to
/// 5 the ratio is 1.06, to 1 draft it is 1.10.
/// Source:   docs/theory.md#typed-acceptance
struct DepthRatios {
  double steepest = 0.7;
  double usual = 0.95;
  double rising = 1.1;
};
inline constexpr DepthRatios published_depth_ratios = {};

/// The rates of two figures that no single rate gives, each within its rounding and, if known, its sampling error.
struct DifferentRates {
  std::int64_t first_gamma = 1, second_gamma = 1;
  double first_rate = 0, second_rate = 0;
};

struct TypedAcceptance {
  /// Passes through the typed figures; beyond and between them by the usual ratio, or by the ratio that fits three or
  /// more lengths.
  core::AcceptanceProfile profile;
  /// The profiles allowed by rounding and by the steepest and the rising ratio, beyond the figures, between them and
  /// below; by rounding alone if no rate continues. For several figures also those that meet the ends of each one's
  /// rounding, as far as some survival function does or, if `misfit` is above 0, in any case.
  std::vector<core::AcceptanceProfile> readings = {};
  /// The ends of its 95% interval by the sample's size, of which the outermost count at each gamma; empty if, and
  /// only if, that size is unknown.
  std::vector<core::AcceptanceProfile> ci95 = {};
  /// The longest draft that was typed.
  std::int64_t measured_at = 1;
  /// The shortest draft whose tokens per step follow from the typed figures.
  std::int64_t measured_from = 1;
  /// The one rate that gives a single length; for several figures, accepted drafts per examined draft.
  core::AcceptanceRate rate;
  /// False if no survival function gives the figures within their rounding.
  bool monotone = true;
  /// The largest distance of the profile from a typed length, beyond that length's rounding.
  double misfit = 0;
  /// The two figures that differ most, if no single rate gives them.
  std::optional<DifferentRates> falsified = {};
  /// The ratio of each further draft's rate to the one before it; empty if no rate continues.
  std::optional<double> ratio_beyond = {};
  /// True if that ratio comes from the figures themselves, not from the published median.
  bool ratio_fitted = false;
  /// What the figures say of the population of requests, by which they are carried to other gammas.
  PopulationCurve::Evidence evidence = {};
};

/// Variance of a run's mean as a multiple of that of independent rounds: rounds of one text resemble each other.
inline constexpr double typed_design_effect = 3;

/// From tokens per step by gamma. Survival follows if some survival function lies within half a unit of every
/// length; of those, the one nearest to the lengths is taken: each is met as closely as the others allow. If
/// there is none, all half units are widened by the smallest number that admits one, the misfit. The 95% interval tilts
/// the odds of rates so that each length moves to the ends of Wilson's interval for the share of its drafts that is
/// accepted, with the number of trials that gives the standard error (typed_design_effect is part of its variance).
///
/// Source:   docs/theory.md#typed-acceptance
/// @param lengths  at least one, gammas rising, the last at most theory::longest_profile
/// @param rounds   the number of rounds behind each length, > 0
/// @throws std::invalid_argument if lengths is empty or the gammas do not rise
/// @throws std::domain_error if a length, a half unit or the rounds are outside their range
TypedAcceptance typed_lengths(std::span<const TypedLength> lengths, std::optional<double> rounds = std::nullopt);

/// The same from lengths whose 95% intervals are known otherwise, in place of a number of rounds.
/// @param ci95  an interval of each length, around it, in [1, gamma + 1]
/// @throws std::invalid_argument if there are not as many intervals as lengths
/// @throws std::domain_error as typed_lengths, and if an interval does not hold its length
TypedAcceptance typed_lengths_within(std::span<const TypedLength> lengths, std::span<const Interval> ci95);

/// A typed rate at one position.
struct TypedRate {
  double rate = 0;  ///< [0, 1]
  double half_unit = 0;
};

/// From P(at least j drafts accepted), j = 1, 2, ..., or from the rates given that all before are accepted. The tokens
/// per step have the rounding error of all rates together, and at each gamma the sampling error that this many rounds
/// give for the drafts accepted up to it.
/// @throws as typed_lengths
TypedAcceptance typed_positions(std::span<const TypedRate> rates, bool conditional,
                                std::optional<double> rounds = std::nullopt);

}  // namespace specdec::estimate
