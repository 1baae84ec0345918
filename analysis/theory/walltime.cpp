#include "analysis/theory/walltime.hpp"

#include "analysis/core/checks.hpp"
#include "analysis/theory/extended.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/power_sum_root.hpp"

namespace specdec::theory {
double walltime_improvement(const core::AcceptanceProfile& acceptance, std::int64_t gamma, const core::StepCost& cost) {
  core::require_in("walltime_improvement", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(extended::expected_tokens(acceptance, gamma) / cost.extended(gamma));
}

double walltime_improvement(const core::AcceptanceProfile& acceptance, std::int64_t gamma, double c) {
  return walltime_improvement(acceptance, gamma, core::StepCost{.c = c});
}

bool some_gamma_helps(const core::AcceptanceRate& rate, double c) {
  core::require_in("some_gamma_helps", "c", c, 0, core::largest_double);
  return c < 0.5 ? rate.alpha() > c : rate.rejection() < 1 - c;
}

double guaranteed_improvement(const core::AcceptanceRate& rate, double c) {
  core::require_in("guaranteed_improvement", "c", c, 0, core::largest_double);
  return walltime_improvement(rate, 1, c);
}

std::optional<core::AcceptanceRate> break_even_alpha(std::int64_t gamma, const core::StepCost& cost) {
  core::require_in("break_even_alpha", "gamma", gamma, 1, core::largest_integer);
  const auto drafts = static_cast<long double>(gamma);
  const long double excess = cost.extended_excess(gamma);
  if (excess > drafts) return std::nullopt;
  return rate_with_power_sum(excess, gamma);
}

std::optional<core::AcceptanceRate> break_even_alpha(const core::StepCost& cost) {
  core::AcceptanceRate rate(1.0);
  const auto lower_to = [&](std::int64_t gamma) {
    const auto candidate = break_even_alpha(gamma, cost);
    const bool lower = candidate && *candidate < rate;
    if (lower) rate = *candidate;
    return lower;
  };
  // At the break-even rate of the best gamma another gamma may still gain, and has a lower break-even rate.
  OptimalGamma best = optimal_gamma(rate, cost);
  if (best.gamma == 0) return std::nullopt;
  while (best.gamma > 0 && lower_to(best.gamma)) best = optimal_gamma(rate, cost);
  // Gains below 4 ulp are ties for optimal_gamma; there E[K] - 1 = alpha, and the cheapest step decides.
  for (const auto& piece : cost.pieces()) lower_to(piece.first);
  return rate;
}

}  // namespace specdec::theory
