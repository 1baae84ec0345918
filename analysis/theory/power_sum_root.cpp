#include "analysis/theory/power_sum_root.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>

#include "analysis/theory/extended.hpp"

namespace specdec::theory {
namespace {

// The root of f in [lower, upper], with f of opposite signs there up to the rounding of the bounds.
template <class Function>
double root(Function f, long double lower, long double upper) {
  constexpr long double margin = 64 * std::numeric_limits<long double>::epsilon();
  lower *= 1 - margin;
  upper *= 1 + margin;
  std::uintmax_t iterations = 1000;  // bisection alone needs far fewer
  const boost::math::tools::eps_tolerance<long double> tolerance(std::numeric_limits<long double>::digits - 3);
  const auto [below, above] = boost::math::tools::toms748_solve(f, lower, upper, tolerance, iterations);
  return static_cast<double>((below + above) / 2);
}

}  // namespace

core::AcceptanceRate rate_with_power_sum(long double accepted_drafts, std::int64_t gamma) {
  const auto drafts = static_cast<long double>(gamma);
  const long double accepted = std::clamp(accepted_drafts, 0.0L, drafts);
  const long double lost = drafts - accepted;
  if (accepted == 0) return core::AcceptanceRate(0.0);
  if (lost == 0) return core::AcceptanceRate(1.0);
  if (gamma == 1) return core::AcceptanceRate::from_masses(static_cast<double>(accepted), static_cast<double>(lost));

  const long double accepted_at_half = 1 - std::exp2(-drafts);
  if (accepted < accepted_at_half) {
    // alpha <= sum <= gamma alpha
    const auto excess = [&](long double alpha) {
      return alpha * extended::power_sum(extended::Rate::from_alpha(alpha), drafts) - accepted;
    };
    return core::AcceptanceRate(root(excess, accepted / drafts, std::min(accepted, 0.5L)));
  }
  // gamma epsilon <= sum of (1 - alpha^j) <= gamma (gamma + 1) / 2 epsilon; the smaller of both sums is compared.
  const auto shortfall = [&](long double epsilon) {
    const auto rate = extended::Rate::from_rejection(epsilon);
    return accepted < lost ? accepted - (1 - epsilon) * extended::power_sum(rate, drafts)
                           : extended::lost_sum(rate, drafts + 1) - lost;
  };
  return core::AcceptanceRate::from_rejection(
      root(shortfall, lost / (drafts * (drafts + 1) / 2), std::min(lost / drafts, 0.5L)));
}

}  // namespace specdec::theory
