#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "analysis/core/checks.hpp"

namespace specdec::core {

/// The length of a draft that is looked up: with probability h a lookup finds something that L tokens follow, of
/// which the first gamma are proposed; else the round is a plain step.
///
///   P(L >= k) = (1 - 1/m)^(k - 1), a geometric law of mean m; 1 for every k where no mean is given
///
/// A share f of the tokens is copied, gamma + 1 in a round, so that h falls with gamma: where it was counted at one
/// gamma, the tokens whose lookups find nothing are as many at the others,
///
///   h(gamma) = 1 - (1 - h) t(gamma) / t,   t(gamma) = 1 / (1 - f + f / (gamma + 1)),   t that of the counts
///
/// Source:   docs/theory.md#drafts-that-are-looked-up
struct LookupLaw {
  struct Counted {
    std::int64_t gamma = 1;      ///< >= 1
    double tokens_per_step = 1;  ///< t, [1, gamma + 1]
  };
  /// h, [0, 1]
  double hit_rate = 1;
  /// m, >= 1; a hit proposes all that is asked for where it is not given.
  std::optional<double> mean_length = {};
  /// Where h was counted; h is that of every gamma if it is not given.
  std::optional<Counted> counted_at = {};

  /// h(gamma), [0, 1].
  /// @param gamma  >= 0
  double hit_rate_at(double gamma) const {
    if (!counted_at) return hit_rate;
    const double most = static_cast<double>(counted_at->gamma) + 1, tokens = counted_at->tokens_per_step;
    const double copied = (1 - 1 / tokens) * most / (most - 1);
    const double rounds = 1 - copied + copied / (gamma + 1);
    return std::clamp(1 - (1 - hit_rate) / (tokens * rounds), 0.0, 1.0);
  }
  /// P(at least k tokens follow | hit), [0, 1].
  /// @param k  >= 1
  double reaches(std::int64_t k) const {
    return mean_length ? std::pow(1 - 1 / *mean_length, static_cast<double>(k - 1)) : 1;
  }

  /// Mean drafted tokens of a round, misses included: h sum_{k <= gamma} P(L >= k) = h m (1 - (1 - 1/m)^gamma), which
  /// also goes on between whole numbers.
  /// @param gamma  >= 0
  double mean_drafted(double gamma) const {
    const double hits = hit_rate_at(gamma);
    if (!mean_length || gamma == 0) return hits * gamma;
    return hits * -*mean_length * std::expm1(gamma * std::log1p(-1 / *mean_length));
  }

  /// P(a round drafts exactly l tokens of at most gamma), [0, 1].
  double drafts_exactly(std::int64_t l, std::int64_t gamma) const {
    const double hits = hit_rate_at(static_cast<double>(gamma));
    if (l == 0) return 1 - (gamma > 0 ? hits : 0);
    return hits * (reaches(l) - (l < gamma ? reaches(l + 1) : 0));
  }

  /// The law of lookups of which a share of hit_rate found something and drafted so many tokens on average, gamma at
  /// most: m is where sum_{k <= gamma} P(L >= k) is that mean, by bisection, and is not given where hits fill gamma.
  /// Accuracy: relative error of m <= 1e-9
  /// @param drafted  per hit, [1, gamma]; a mean outside is taken for the nearest end
  /// @param gamma    >= 1
  static LookupLaw counted(double hit_rate, double drafted, std::int64_t gamma) {
    LookupLaw law{hit_rate, 1.0};
    require_in("LookupLaw", "gamma", gamma, std::int64_t{1}, std::int64_t{1} << 40);
    law.require_valid();
    constexpr double all = 1 - 1e-6;
    if (!(drafted < all * static_cast<double>(gamma))) return {hit_rate, {}};
    LookupLaw hits{1, 1.0};
    double low = 1, high = 2;
    const auto reaches_mean = [&](double mean) {
      hits.mean_length = mean;
      return hits.mean_drafted(static_cast<double>(gamma)) >= drafted;
    };
    while (!reaches_mean(high)) high *= 2;
    while (high / low > 1 + 1e-10) {
      const double middle = std::sqrt(low * high);
      (reaches_mean(middle) ? high : low) = middle;
    }
    law.mean_length = drafted <= 1 ? 1 : high;
    return law;
  }

  /// @throws std::domain_error if a member is outside its range
  void require_valid() const {
    require_in("LookupLaw", "hit_rate", hit_rate, 0, 1);
    if (mean_length) require_in("LookupLaw", "mean_length", *mean_length, 1, largest_double);
    if (!counted_at) return;
    require_in("LookupLaw", "gamma", counted_at->gamma, std::int64_t{1}, std::int64_t{1} << 40);
    require_in("LookupLaw", "tokens_per_step", counted_at->tokens_per_step, 1,
               static_cast<double>(counted_at->gamma) + 1);
  }
};

}  // namespace specdec::core
