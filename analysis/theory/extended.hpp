#pragma once

#include <cmath>
#include <cstdint>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/acceptance_rate.hpp"

/// The sums that the closed forms share, in extended precision, so that results are rounded to double once.
/// Internal to analysis/theory. Counts are real because gamma + 1 may be 2^63.
namespace specdec::theory::extended {

/// An acceptance rate as alpha and 1 - alpha, both accurate.
struct Rate {
  long double rejection;
  long double log_alpha;

  Rate(const core::AcceptanceRate& rate)  // NOLINT: converts silently
      : rejection(rate.alpha() < rate.rejection() ? 1 - static_cast<long double>(rate.alpha()) : rate.rejection()),
        log_alpha(rate.log_alpha()) {}
  static Rate from_alpha(long double alpha) { return {1 - alpha, std::log(alpha)}; }
  static Rate from_rejection(long double epsilon) { return {epsilon, std::log1p(-epsilon)}; }

 private:
  Rate(long double epsilon, long double logarithm) : rejection(epsilon), log_alpha(logarithm) {}
};

/// alpha^n, n >= 0.
inline long double power(const Rate& rate, long double n) { return n == 0 ? 1 : std::exp(n * rate.log_alpha); }
/// 1 - alpha^n, n >= 0.
inline long double one_minus_power(const Rate& rate, long double n) {
  return n == 0 ? 0 : -std::expm1(n * rate.log_alpha);
}
/// sum_{j=0}^{count-1} alpha^j.
long double power_sum(const Rate& rate, long double count);
/// sum_{j=0}^{count-1} (1 - alpha^j) = count - power_sum, all terms >= 0.
long double lost_sum(const Rate& rate, long double count);
/// sum_{j=1}^{gamma} j alpha^(j-1).
long double power_sum_derivative(const Rate& rate, long double gamma);
/// Variance of the capped geometric distribution.
long double variance(const Rate& rate, long double gamma);

/// survival(j) of a profile.
long double survival(const core::AcceptanceProfile& profile, std::int64_t j);
/// 1 - survival(j), without cancellation.
long double one_minus_survival(const core::AcceptanceProfile& profile, std::int64_t j);
/// E[K] = sum_{j=0}^{gamma} survival(j).
long double expected_tokens(const core::AcceptanceProfile& profile, std::int64_t gamma);
/// The limit of expected_tokens for gamma -> infinity; may be infinite.
long double expected_tokens_limit(const core::AcceptanceProfile& profile);
/// gamma + 1 - E[K] = sum_{j=0}^{gamma} (1 - survival(j)), all terms >= 0.
long double expected_waste(const core::AcceptanceProfile& profile, std::int64_t gamma);

}  // namespace specdec::theory::extended
