#pragma once

#include <functional>
#include <memory>

#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// Another cost whose plain steps may take longer than it says, by a factor up to one that hangs on the batch. The
/// estimate stays; in replicates the factor's logarithm is uniform:
///
///   plain step of replicate r = base's (most(batch))^u_r,  u_r evenly spread over [0, 1)
class PlainRangeCost final : public WrappedCost {
 public:
  /// @param most  largest factor at a batch, >= 1
  /// @throws std::invalid_argument if base is null
  PlainRangeCost(std::shared_ptr<const RoundCost> base, std::function<double(double)> most);

  RoundTime round(const RoundPoint& point) const override { return base().round(point); }
  RoundTime round_of_replicate(std::size_t index, const RoundPoint& point) const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;

 private:
  double factor(std::size_t index, const RoundPoint& point) const;

  std::function<double(double)> most_;
};

}  // namespace specdec::cost
