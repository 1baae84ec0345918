#pragma once

#include <functional>
#include <memory>

#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// Another cost whose rounds may take other times than it says, by a factor within a range that hangs on the point. The
/// estimate stays; in replicates the factor's logarithm is uniform over the range but for a share of the replicates,
/// which have its high end; one for all plain rounds and one for all with drafts:
///
///   round of replicate r = base's (hi / lo)^min(1, u_r / (1 - at_end)) lo,  u_r evenly spread over [0, 1)
class RangeCost final : public WrappedCost {
 public:
  /// @param factors  those at a point, lo <= hi, both above 0
  /// @param at_end   the share of replicates at the high end, [0, 1)
  /// @throws std::invalid_argument if one of them is null
  /// @throws std::domain_error if the share is outside its range
  RangeCost(std::shared_ptr<const RoundCost> base, std::function<Range(const RoundPoint&)> factors, double at_end = 0);

  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;

 private:
  std::function<Range(const RoundPoint&)> factors_;
  double at_end_;
};

}  // namespace specdec::cost
