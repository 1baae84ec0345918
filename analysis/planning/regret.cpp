#include "analysis/planning/regret.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/core/checks.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

/// The first gamma of [first, last] from which `value`, falling and then rising, no longer falls.
template <class Value>
std::int64_t bottom_of_valley(std::int64_t first, std::int64_t last, const Value& value) {
  while (first < last) {
    const std::int64_t middle = std::midpoint(first, last);
    if (value(middle + 1) < value(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// The gamma of [first, last] with the smallest value, if `value` falls and then rises on each range of gammas >= 1
/// on which the cost of verification is linear.
template <class Value>
std::int64_t least(std::int64_t first, std::int64_t last, const core::StepCost& cost, const Value& value) {
  std::int64_t best = first;
  std::int64_t from = std::max<std::int64_t>(first, 1);
  const auto consider_up_to = [&](std::int64_t to) {
    to = std::min(to, last);
    if (from > to) return;
    const std::int64_t candidate = bottom_of_valley(from, to, value);
    if (value(candidate) < value(best)) best = candidate;
    from = to;
  };
  for (const core::VerificationCost::Point& knot : cost.verification.points()) consider_up_to(knot.tokens - 1);
  consider_up_to(last);
  return best;
}

double regret_against(double best, double speedup) {
  return std::isinf(best) ? 1.0 : std::clamp(1.0 - speedup / best, 0.0, 1.0);
}

void require_allowed(const char* function, std::int64_t gamma, const SearchSpace& space) {
  core::require_in(function, "gamma", gamma, 0, space.max_gamma);
}

void require_ordered(const char* function, const RateInterval& rates) {
  core::require_in(function, "high", rates.high.alpha(), rates.low.alpha(), 1.0);
  core::require_in(function, "rejection at high", rates.high.rejection(), 0.0, rates.low.rejection());
}

}  // namespace

theory::OptimalGamma best_gamma(const core::AcceptanceProfile& acceptance, const SearchSpace& space) {
  core::require_in("best_gamma", "max_gamma", space.max_gamma, 0, no_max_gamma);
  theory::OptimalGamma best = theory::optimal_gamma(acceptance, space.cost);
  if (space.max_gamma == no_max_gamma || (best.attained() && best.gamma <= space.max_gamma)) return best;
  const auto speedup = [&](std::int64_t gamma) { return theory::walltime_improvement(acceptance, gamma, space.cost); };
  best.kind = theory::OptimumKind::attained;
  best.gamma = least(0, space.max_gamma, space.cost, [&](std::int64_t gamma) { return -speedup(gamma); });
  best.speedup = speedup(best.gamma);
  best.ties = {best.gamma, best.gamma};
  return best;
}

std::vector<theory::GammaRange> near_best_gammas(const core::AcceptanceProfile& acceptance, const SearchSpace& space,
                                                 double tolerance) {
  std::vector<theory::GammaRange> ranges;
  const theory::OptimalGamma best = best_gamma(acceptance, space);
  if (best.gamma == theory::optimal_gamma(acceptance, space.cost).gamma) {
    ranges = theory::near_optimal_gammas(acceptance, space.cost, tolerance);
    if (space.max_gamma == no_max_gamma) return ranges;
    std::erase_if(ranges, [&](const theory::GammaRange& range) { return range.first > space.max_gamma; });
    ranges.back().last = std::min(ranges.back().last, space.max_gamma);
    return ranges;
  }
  for (std::int64_t gamma = 0; gamma <= space.max_gamma; ++gamma) {
    if (theory::walltime_improvement(acceptance, gamma, space.cost) < (1 - tolerance) * best.speedup) continue;
    if (!ranges.empty() && ranges.back().last == gamma - 1) {
      ranges.back().last = gamma;
    } else {
      ranges.push_back({gamma, gamma});
    }
  }
  return ranges;
}

double regret(const core::AcceptanceProfile& acceptance, std::int64_t gamma, const SearchSpace& space) {
  require_allowed("regret", gamma, space);
  return regret_against(best_gamma(acceptance, space).speedup,
                        theory::walltime_improvement(acceptance, gamma, space.cost));
}

core::AcceptanceRate middle(const RateInterval& rates) {
  return core::AcceptanceRate::from_masses(std::midpoint(rates.low.alpha(), rates.high.alpha()),
                                           std::midpoint(rates.low.rejection(), rates.high.rejection()));
}

double worst_regret(const RateInterval& rates, std::int64_t gamma, const SearchSpace& space) {
  require_ordered("worst_regret", rates);
  return std::max(regret(rates.low, gamma, space), regret(rates.high, gamma, space));
}

MinimaxGamma minimax_gamma(const RateInterval& rates, const SearchSpace& space, std::int64_t largest) {
  require_ordered("minimax_gamma", rates);
  const double best_at_low = best_gamma(rates.low, space).speedup;
  const double best_at_high = best_gamma(rates.high, space).speedup;
  const auto worst = [&](std::int64_t gamma) {
    return std::max(regret_against(best_at_low, theory::walltime_improvement(rates.low, gamma, space.cost)),
                    regret_against(best_at_high, theory::walltime_improvement(rates.high, gamma, space.cost)));
  };
  const SearchSpace allowed = {space.cost, std::min(space.max_gamma, largest)};
  const theory::OptimalGamma from = best_gamma(rates.low, allowed);
  const theory::OptimalGamma to = best_gamma(rates.high, allowed);
  if (!from.attained() || std::isinf(to.speedup)) return {false, no_max_gamma, worst(no_max_gamma)};
  if (std::isinf(best_at_high)) return {true, to.gamma, worst(to.gamma)};
  const std::int64_t gamma = least(from.gamma, to.gamma, space.cost, worst);
  return {true, gamma, worst(gamma)};
}

std::vector<BestStretch> best_stretches(const RateInterval& rates, const SearchSpace& space, std::size_t limit) {
  require_ordered("best_stretches", rates);
  const auto best_at = [&](const core::AcceptanceRate& rate) { return best_gamma(rate, space).gamma; };
  const std::int64_t last = best_gamma(rates.high, space).gamma;
  std::int64_t gamma = best_gamma(rates.low, space).gamma;
  core::AcceptanceRate from = rates.low;
  std::vector<BestStretch> stretches;
  while (gamma != last && stretches.size() < limit) {
    core::AcceptanceRate inside = from;
    core::AcceptanceRate beyond = rates.high;
    for (core::AcceptanceRate rate = middle({inside, beyond}); inside < rate && rate < beyond;
         rate = middle({inside, beyond})) {
      (best_at(rate) == gamma ? inside : beyond) = rate;
    }
    stretches.push_back({gamma, from, inside});
    gamma = best_at(beyond);
    from = beyond;
  }
  if (stretches.size() < limit) stretches.push_back({gamma, from, rates.high});
  return stretches;
}

}  // namespace specdec::planning
