#pragma once

#include <cstdint>
#include <optional>

#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// The counts that a server keeps of steps with one fixed gamma >= 1.
struct AcceptanceCounts {
  std::int64_t steps = 0;
  /// Accepted drafts, summed over all steps.
  std::int64_t accepted = 0;
  /// Steps in which all gamma drafts were accepted.
  std::int64_t full_accepts = 0;
};

/// The acceptance rate from counters: the maximum-likelihood estimate for a geometric law truncated at gamma.
///
///   alpha_hat = A / (A + M - F);   every drafted token that was examined is one trial, and M - F of them failed.
///
/// Source:   docs/theory.md; the interval is Clopper and Pearson's for A successes in A + M - F trials
/// Assumes:  acceptances i.i.d. with rate alpha, gamma >= 1. Accepted / drafted is NOT an estimate of alpha: drafts
///           behind a rejection are never examined.
/// @param counts  steps >= 0, 0 <= full_accepts <= steps, accepted >= full_accepts
/// @return alpha_hat in [0, 1] with its interval; empty if no draft was examined
/// @throws std::domain_error if the counts contradict each other
/// Accuracy: relative error <= 1e-10 (the interval's ends)
std::optional<Estimate> acceptance_rate(const AcceptanceCounts& counts);

/// Wilson's score interval for a proportion, clamped to [0, 1]. The number of trials need not be an integer: dependent
/// ones are worth fewer.
///
/// Source:   Wilson 1927; the default if an interval narrower than Clopper and Pearson's is wanted
/// @param share             the share of successes, [0, 1]
/// @param effective_trials  > 0
/// @throws std::domain_error if an argument is out of range
/// Accuracy: absolute error <= 1e-12
Interval wilson_interval_of_share(double share, double effective_trials);

/// Clopper and Pearson's exact interval for a proportion; its coverage is never below 95%.
///
/// Source:   Clopper and Pearson 1934
/// @param successes  [0, trials]
/// @param trials     >= 1
/// @throws std::domain_error if the counts are out of range
/// Accuracy: absolute error <= 1e-11
Interval clopper_pearson_interval(std::int64_t successes, std::int64_t trials);

/// The same for counts that need not be integers: dependent trials worth fewer independent ones, or inferred counts.
///
///   lo = B^-1(0.025; k, n - k + 1),   hi = B^-1(0.975; k + 1, n - k),   B the regularised incomplete beta function
///
/// Beyond 1e9 successes and failures it is Wilson's interval with a continuity correction, which agrees to
/// 1e-4 of its width.
/// @param successes  k in [0, trials]
/// @param trials     n > 0
/// @throws std::domain_error if an argument is out of range
/// Accuracy: absolute error <= 1e-11
Interval clopper_pearson_interval_of_share(double successes, double trials);

}  // namespace specdec::estimate
