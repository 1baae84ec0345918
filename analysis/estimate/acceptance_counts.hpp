#pragma once

#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// Wilson's score interval for a proportion, clamped to [0, 1]. The number of trials need not be an integer: dependent
/// ones are worth fewer.
///
/// Source:   Wilson 1927; the default if an interval narrower than Clopper and Pearson's is wanted
/// @param share             the share of successes, [0, 1]
/// @param effective_trials  > 0
/// @throws std::domain_error if an argument is out of range
/// Accuracy: absolute error <= 1e-12
Interval wilson_interval_of_share(double share, double effective_trials);

/// Clopper and Pearson's exact interval for a proportion; its coverage is never below 95%. Counts need not be integers:
/// dependent trials are worth fewer independent ones, and some counts are inferred.
///
///   lo = B^-1(0.025; k, n - k + 1),   hi = B^-1(0.975; k + 1, n - k),   B the regularised incomplete beta function
///
/// Beyond 1e9 successes and failures it is Wilson's interval with a continuity correction, which agrees to
/// 1e-4 of its width.
///
/// Source:   Clopper and Pearson 1934
/// @param successes  k in [0, trials]
/// @param trials     n > 0
/// @throws std::domain_error if an argument is out of range
/// Accuracy: absolute error <= 1e-11
Interval clopper_pearson_interval_of_share(double successes, double trials);

}  // namespace specdec::estimate
