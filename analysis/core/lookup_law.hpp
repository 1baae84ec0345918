#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "analysis/core/checks.hpp"

namespace specdec::core {

/// How much a draft proposes that is looked up: with probability h a lookup finds something that L tokens follow, of
/// which the first gamma are proposed; else the round is a plain step.
///
///   P(L >= k) = (1 - 1/m)^(k - 1), a geometric law of mean m; 1 for every k where no mean is given
///
/// Source:   docs/theory.md#drafts-that-are-looked-up
struct LookupLaw {
  /// h, [0, 1]
  double hit_rate = 1;
  /// m, >= 1; a hit proposes all that is asked for where it is not given.
  std::optional<double> mean_length = {};

  /// P(at least k tokens follow | hit), [0, 1].
  /// @param k  >= 1
  double reaches(std::int64_t k) const {
    return mean_length ? std::pow(1 - 1 / *mean_length, static_cast<double>(k - 1)) : 1;
  }

  /// Mean drafted tokens of a round, misses included: h sum_{k <= gamma} P(L >= k).
  /// @param gamma  >= 0
  double mean_drafted(std::int64_t gamma) const {
    double sum = 0;
    for (std::int64_t k = 1; k <= gamma; ++k) sum += reaches(k);
    return hit_rate * sum;
  }

  /// P(a round drafts exactly l tokens of at most gamma), [0, 1].
  double drafts_exactly(std::int64_t l, std::int64_t gamma) const {
    if (l == 0) return 1 - (gamma > 0 ? hit_rate : 0);
    return hit_rate * (reaches(l) - (l < gamma ? reaches(l + 1) : 0));
  }

  /// @throws std::domain_error if a member is outside its range
  void require_valid() const {
    require_in("LookupLaw", "hit_rate", hit_rate, 0, 1);
    if (mean_length) require_in("LookupLaw", "mean_length", *mean_length, 1, largest_double);
  }
};

}  // namespace specdec::core
