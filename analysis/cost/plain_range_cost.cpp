#include "analysis/cost/plain_range_cost.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace specdec::cost {

PlainRangeCost::PlainRangeCost(std::shared_ptr<const RoundCost> base, std::function<double(double)> most)
    : WrappedCost(std::move(base)), most_(std::move(most)) {
  if (!has_base()) throw std::invalid_argument("PlainRangeCost: there is no cost to widen");
}

/// Multiples of the golden ratio spread evenly, whatever else rises with the replicate's number.
double PlainRangeCost::factor(std::size_t index, const RoundPoint& point) const {
  if (point.gamma > 0) return 1;
  const double turns = static_cast<double>(index) * std::numbers::phi;
  return std::pow(most_(point.batch), turns - std::floor(turns));
}

RoundTime PlainRangeCost::round_of_replicate(std::size_t index, const RoundPoint& point) const {
  const RoundTime time = base().round_of_replicate(index, point);
  const double its = factor(index, point);
  return {.target = its * time.target, .draft = its * time.draft, .overhead = its * time.overhead};
}

void PlainRangeCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  base().totals_of_replicates(point, totals);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] *= factor(i, point);
}

}  // namespace specdec::cost
