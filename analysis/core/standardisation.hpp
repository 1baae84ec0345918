#pragma once

#include <cstdint>
#include <span>

namespace specdec::core {

/// Reshaping of a model's distribution before sampling. The defaults change nothing.
struct Standardisation {
  /// [0, inf); 0 is argmax, 1 leaves the distribution as it is.
  double temperature = 1;
  /// Number of tokens kept, >= 0; 0 keeps all.
  std::int64_t top_k = 0;
  /// Probability kept, (0, 1]; 1 keeps all.
  double top_p = 1;
  /// Least probability kept, as a share of the largest one, [0, 1]; 0 keeps all.
  double min_p = 0;
  /// Apply the cuts before the temperature, as llama.cpp does; by default the temperature comes first.
  bool temperature_last = false;

  bool changes_nothing() const { return temperature == 1 && top_k == 0 && top_p == 1 && min_p == 0; }

  friend bool operator==(const Standardisation&, const Standardisation&) = default;
};

/// Checks that every field is in its range.
/// @throws std::domain_error naming the field
void require_valid(const Standardisation& standardisation);

/// Reshapes one distribution in place: temperature, then top-k, top-p and min-p, then division by the sum; or with
/// temperature_last top-k, top-p and min-p, then temperature, which differs if both a cut and a temperature are on.
///
///   temperature T:  p(x) <- (p(x) / max p)^(1/T);   T = 0: all mass on the most probable token, the lowest in a tie
///   top-k:          keeps the k most probable tokens, the lowest in a tie
///   top-p:          the tokens in descending order (lowest of ties first) up to and including the first at which
///                   their sum reaches top_p times the sum of all that top-k kept
///   min-p:          keeps the tokens with p(x) >= min_p max p
///
/// Steps that are off (temperature 1, top_k 0, top_p 1, min_p 0) are skipped; if all are, no bit of the row changes.
///
/// Source:   Leviathan et al. 2023, section 2.2 (standardised sampling); min-p: Nguyen et al. 2024, arXiv:2407.01082
/// Assumes:  every entry >= 0, their sum positive.
/// @param probabilities  one row, shape (vocab)
/// @throws std::domain_error if a field of `standardisation` is out of range
void standardise(std::span<double> probabilities, const Standardisation& standardisation);

/// The most probable token, the lowest in a tie; 0 if every entry is NaN. Assumes that the row is not empty and no
/// entry is negative.
std::int64_t argmax(std::span<const double> probabilities);

}  // namespace specdec::core
