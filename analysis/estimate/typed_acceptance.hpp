#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/core/acceptance_rate.hpp"
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

struct TypedAcceptance {
  /// The longest draft that was typed.
  std::int64_t measured_at = 1;
  /// Accepted drafts per examined draft there; the one rate that gives as many tokens per step where no length of one
  /// draft less is typed.
  core::AcceptanceRate rate = core::AcceptanceRate(0);
  /// False if no survival function gives the figures within their rounding.
  bool monotone = true;
  /// True if the number of rounds is known, and with it the sampling error.
  bool is_sampled = false;
  /// What the figures say of the population of requests, by which they are carried to other gammas.
  PopulationCurve::Evidence evidence = {};
};

/// The longest draft that can be typed.
inline constexpr std::int64_t longest_typed = 1'000'000;

/// From tokens per step by gamma, which stand as they are typed, whether or not some survival function gives them all.
///
/// Source:   docs/theory.md#typed-acceptance
/// @param lengths  at least one, gammas rising, the last at most longest_typed
/// @param rounds   the number of rounds behind each length, > 0
/// @throws std::invalid_argument if lengths is empty or the gammas do not rise
/// @throws std::domain_error if a length, a half unit or the rounds are outside their range
TypedAcceptance typed_lengths(std::span<const TypedLength> lengths, std::optional<double> rounds = std::nullopt);

/// A typed rate at one position.
struct TypedRate {
  double rate = 0;  ///< [0, 1]
  double half_unit = 0;
};

/// From P(at least j drafts accepted), j = 1, 2, ..., or from the rates given that all before are accepted. The tokens
/// per step have the rounding error of all rates together, and the sampling error of this many rounds.
/// @throws as typed_lengths
TypedAcceptance typed_positions(std::span<const TypedRate> rates, bool conditional,
                                std::optional<double> rounds = std::nullopt);

}  // namespace specdec::estimate
