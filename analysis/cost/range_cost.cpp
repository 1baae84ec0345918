#include "analysis/cost/range_cost.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::cost {
namespace {

/// Multiples of an irrational number spread evenly, whatever else rises with the replicate's number; those of two are
/// independent of each other.
double factor_in(const Range& range, double at_end, std::size_t index, bool drafts) {
  const double turns = static_cast<double>(index) * (drafts ? std::numbers::sqrt2 : std::numbers::phi);
  return range.lo * std::pow(range.hi / range.lo, std::min(1.0, (turns - std::floor(turns)) / (1 - at_end)));
}

}  // namespace

RangeCost::RangeCost(std::shared_ptr<const RoundCost> base, std::function<Range(const RoundPoint&)> factors,
                     double at_end)
    : WrappedCost(std::move(base)), factors_(std::move(factors)), at_end_(at_end) {
  if (!factors_) throw std::invalid_argument("RangeCost: factors are empty, but must be a function");
  core::require_in("RangeCost", "at_end", at_end, 0, 1 - 1e-9);
}

RoundTime RangeCost::price(std::size_t version, const RoundPoint& point) const {
  const RoundTime time = base().price(version, point);
  if (version == 0) return time;
  return time.times(factor_in(factors_(point), at_end_, version - 1, point.gamma > 0));
}

void RangeCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  base().totals_of_replicates(point, totals);
  const Range range = factors_(point);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] *= factor_in(range, at_end_, i, point.gamma > 0);
}

}  // namespace specdec::cost
