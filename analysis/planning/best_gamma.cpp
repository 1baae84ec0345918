#include "analysis/planning/best_gamma.hpp"

#include <algorithm>
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

core::AcceptanceRate middle(const RateInterval& rates) {
  return core::AcceptanceRate::from_masses(std::midpoint(rates.low.alpha(), rates.high.alpha()),
                                           std::midpoint(rates.low.rejection(), rates.high.rejection()));
}

}  // namespace specdec::planning
