#include "analysis/estimate/acceptance_counts.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

constexpr double tail = 0.025;
/// Successes and failures beyond which the incomplete beta function takes too many terms; the binomial law is then
/// normal to all relevant digits.
constexpr double normal_counts = 1e9;

}  // namespace

Interval wilson_interval_of_share(double share, double effective_trials) {
  const double n = effective_trials;
  core::require_in("wilson_interval_of_share", "share", share, 0, 1);
  core::require_in("wilson_interval_of_share", "effective_trials", n, std::numeric_limits<double>::min(),
                   std::numeric_limits<double>::max());
  const double z = boost::math::quantile(boost::math::complement(boost::math::normal(), tail));
  const double centre = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half_width = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return {std::max(0.0, centre - half_width), std::min(1.0, centre + half_width)};
}

Interval clopper_pearson_interval_of_share(double successes, double trials) {
  const double k = successes, n = trials;
  core::require_in("clopper_pearson_interval_of_share", "trials", n, std::numeric_limits<double>::min(),
                   std::numeric_limits<double>::max());
  core::require_in("clopper_pearson_interval_of_share", "successes", k, 0, n);
  if (std::min(k, n - k) > normal_counts) {
    // With a continuity correction.
    return {wilson_interval_of_share((k - 0.5) / n, n).lo, wilson_interval_of_share((k + 0.5) / n, n).hi};
  }
  // In double: a third of the time, and twelve digits.
  const boost::math::policies::policy<boost::math::policies::promote_double<false>> in_double;
  return {k == 0 ? 0.0 : boost::math::ibeta_inv(k, n - k + 1, tail, in_double),
          k == n ? 1.0 : boost::math::ibetac_inv(k + 1, n - k, tail, in_double)};
}

}  // namespace specdec::estimate
