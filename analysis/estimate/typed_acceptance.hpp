#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"

/// Acceptance from numbers that somebody typed: rounded, of few draft lengths, and asked about at others.
namespace specdec::estimate {

/// Tokens per step at one draft length, as typed.
struct TypedLength {
  std::int64_t gamma = 1;      ///< >= 1
  double tokens_per_step = 1;  ///< bonus token included, [1, gamma + 1]
  /// What was rounded lies at most so far from it; 0 where it was not rounded.
  double half_unit = 0;
};

/// A conditional acceptance rate over the one a draft earlier, where it is not known: rate_(j+1) = ratio rate_j, at
/// most 1.
///
/// Of published lengths by K and rates by position, each carried from 3 drafts to its last one (5 to 8 drafts), the
/// ratio that fits: two MTP modules .69 and .70, ten DSpark and EAGLE-3 curves .87, .90, .92, .94, .96, .96, .98, .98,
/// .99 and 1.00; their median is .95. Rates of n-grams looked up in the text rise: from 3 drafts to
/// 5 the ratio is 1.06, to 1 draft it is 1.10.
/// Source:   docs/theory.md#typed-acceptance
struct DepthRatios {
  double steepest = 0.7;
  double usual = 0.95;
  double rising = 1.1;
};
inline constexpr DepthRatios published_depth_ratios = {};

/// Rates of two figures that no one rate gives, each within its rounding and, where it is known, its sampling error.
struct DifferentRates {
  std::int64_t first_gamma = 1, second_gamma = 1;
  double first_rate = 0, second_rate = 0;
};

struct TypedAcceptance {
  /// Through what was typed; beyond it and between it by the usual ratio, or by the ratio that fits three lengths or
  /// more.
  core::AcceptanceProfile profile;
  /// What rounding and the steepest and the rising ratio make of it, beyond the figures, between them and below; of
  /// rounding alone where no rate goes on. Of several figures, also those that meet the ends of each one's rounding, as
  /// far as some survival function does or, where `misfit` is above 0, in any case.
  std::vector<core::AcceptanceProfile> readings = {};
  /// The ends of its 95% interval by the sample's size, of which the outermost count at each gamma; empty where, and
  /// only where, that is not known.
  std::vector<core::AcceptanceProfile> ci95 = {};
  /// The longest draft that was typed.
  std::int64_t measured_at = 1;
  /// The shortest one whose tokens per step follow from what was typed.
  std::int64_t measured_from = 1;
  /// The one rate that gives a single length; accepted drafts per draft looked at of several figures.
  core::AcceptanceRate rate;
  /// False where no survival function gives the figures within their rounding.
  bool monotone = true;
  /// By how much more than its rounding the profile misses the length that it misses most.
  double misfit = 0;
  /// Of the two figures that differ most, where no one rate gives them.
  std::optional<DifferentRates> falsified = {};
  /// Of each further draft's rate to the one before it; nothing where no rate goes on.
  std::optional<double> ratio_beyond = {};
  /// Whether that ratio is the figures' own, not the published median.
  bool ratio_fitted = false;
};

/// Variance of a run's mean as a multiple of that of independent rounds: rounds of one text resemble each other.
inline constexpr double typed_design_effect = 3;

/// From tokens per step by gamma. Survival follows where some survival function lies within half a unit of every
/// length, and what is taken is the nearest one to the lengths: each is met as nearly as the others let it be. Where
/// none does, all half units are widened by the least number with which one does, the misfit. The 95% interval tilts
/// the odds of rates so that each length moves to the ends of Wilson's interval for the share of its drafts that is
/// accepted, of as many trials as give the standard error, typed_design_effect being in its variance.
///
/// Source:   docs/theory.md#typed-acceptance
/// @param lengths  at least one, gammas rising, the last at most theory::longest_profile
/// @param rounds   that each length is the mean of, > 0
/// @throws std::invalid_argument if lengths is empty or the gammas do not rise
/// @throws std::domain_error if a length, a half unit or the rounds are outside their range
TypedAcceptance typed_lengths(std::span<const TypedLength> lengths, std::optional<double> rounds = std::nullopt);

/// A rate by position, as typed.
struct TypedRate {
  double rate = 0;  ///< [0, 1]
  double half_unit = 0;
};

/// From P(at least j drafts accepted), j = 1, 2, ..., or from the rates given that all before are accepted. The tokens
/// per step are known to what all rates together may be off by their rounding, and at each gamma to what so many rounds
/// tell of the drafts accepted up to it.
/// @throws as typed_lengths
TypedAcceptance typed_positions(std::span<const TypedRate> rates, bool conditional,
                                std::optional<double> rounds = std::nullopt);

}  // namespace specdec::estimate
