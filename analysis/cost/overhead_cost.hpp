#pragma once

#include <memory>

#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// Another cost, and of each speculative round a part that it does not hold:
///
///   round(gamma) = base(gamma) + [gamma > 0] (seconds + steps base(0))      at the same batch and context
///
/// Source:   docs/theory.md#cost-of-a-round
class OverheadCost final : public WrappedCost {
 public:
  /// @param seconds  >= 0; of a cost in plain target steps 0   @param steps  plain target steps, >= 0
  /// @throws std::invalid_argument if base is null or knows no seconds and some are given
  /// @throws std::domain_error if a value is outside its range
  OverheadCost(std::shared_ptr<const RoundCost> base, double seconds, double steps);

  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;

 private:
  double seconds_ = 0, steps_ = 0;
};

}  // namespace specdec::cost
