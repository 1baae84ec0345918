#include "analysis/cost/round_cost.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/quantile.hpp"

namespace specdec::cost {

void RoundCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates());
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = round_of_replicate(i, point).total();
}

Range central_range(const RoundCost& cost, const RoundPoint& point) {
  const std::size_t count = cost.replicates();
  const double total = cost.round(point).total();
  if (count == 0) return {total, total};
  std::vector<double> totals(count);
  cost.totals_of_replicates(point, totals);
  std::sort(totals.begin(), totals.end());
  return {core::sorted_quantile(totals, 0.025), core::sorted_quantile(totals, 0.975)};
}

void require_legal(const RoundPoint& point) {
  constexpr std::string_view function = "RoundCost";
  constexpr double largest = std::numeric_limits<double>::max();
  core::require_in(function, "gamma", point.gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_in(function, "batch", point.batch, std::numeric_limits<double>::denorm_min(), largest);
  core::require_in(function, "context", point.context, 0, largest);
  core::require_in(function, "full_accepts", point.full_accepts, 0, 1);
}

}  // namespace specdec::cost
