#include "analysis/estimate/acceptance_counts.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
constexpr double tail = 0.025;
/// Successes and failures beyond which the incomplete beta function takes too many terms; the binomial law is then
/// normal to all relevant digits.
constexpr double normal_counts = 1e9;

void require_proportion(std::string_view function, std::int64_t successes, std::int64_t trials) {
  core::require_in(function, "trials", trials, std::int64_t{1}, unbounded);
  core::require_in(function, "successes", successes, std::int64_t{0}, trials);
}

}  // namespace

std::optional<Estimate> acceptance_rate(const AcceptanceCounts& counts) {
  core::require_in("acceptance_rate", "steps", counts.steps, std::int64_t{0}, unbounded);
  core::require_in("acceptance_rate", "full_accepts", counts.full_accepts, std::int64_t{0}, counts.steps);
  core::require_in("acceptance_rate", "accepted", counts.accepted, counts.full_accepts, unbounded - counts.steps);
  const std::int64_t trials = counts.accepted + counts.steps - counts.full_accepts;
  if (trials == 0) return std::nullopt;
  return Estimate{static_cast<double>(counts.accepted) / static_cast<double>(trials),
                  clopper_pearson_interval(counts.accepted, trials), "censored geometric, Clopper-Pearson"};
}

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

Interval clopper_pearson_interval(std::int64_t successes, std::int64_t trials) {
  require_proportion("clopper_pearson_interval", successes, trials);
  return clopper_pearson_interval_of_share(static_cast<double>(successes), static_cast<double>(trials));
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
