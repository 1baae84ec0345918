#include "analysis/cost/overhead_cost.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::cost {

OverheadCost::OverheadCost(std::shared_ptr<const RoundCost> base, double seconds, double steps)
    : WrappedCost(std::move(base)), seconds_(seconds), steps_(steps) {
  core::require_in("OverheadCost", "seconds", seconds, 0, core::largest_double);
  core::require_in("OverheadCost", "steps", steps, 0, core::largest_double);
  if (seconds > 0 && !in_seconds())
    throw std::invalid_argument("OverheadCost: seconds are given to a cost in plain target steps");
}

RoundTime OverheadCost::price(std::size_t version, const RoundPoint& point) const {
  RoundTime time = base().price(version, point);
  if (point.gamma > 0) time.overhead += seconds_ + steps_ * base().price(version, point.plain()).total();
  return time;
}

void OverheadCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  base().totals_of_replicates(point, totals);
  if (point.gamma == 0) return;
  std::vector<double> plains(totals.size());
  base().totals_of_replicates(point.plain(), plains);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += seconds_ + steps_ * plains[i];
}

}  // namespace specdec::cost
