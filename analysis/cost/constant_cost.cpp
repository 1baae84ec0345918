#include "analysis/cost/constant_cost.hpp"

#include <stdexcept>
#include <utility>

namespace specdec::cost {

ConstantCost::ConstantCost(ConstantOptions options) : options_(std::move(options)) {
  static_cast<void>(options_.step(1));  // refuses c and overhead outside their ranges
}

RoundTime ConstantCost::round(const RoundPoint& point) const {
  require_legal(point);
  if (point.gamma == 0) return {.target = 1};
  const double passes = draft_passes(options_.kind, static_cast<double>(point.gamma));
  const double catch_up = catches_up(options_.kind) && options_.draft_verification
                              ? point.full_accepts * ((*options_.draft_verification)(2) - 1)
                              : 0.0;
  return {.target = static_cast<double>(options_.step.verification.extended(static_cast<long double>(point.gamma) + 1)),
          .draft = options_.step.c * (passes + catch_up),
          .overhead = options_.step.overhead};
}

bool ConstantCost::extrapolates(const RoundPoint& point) const {
  require_legal(point);
  return options_.step.extrapolates(point.gamma);
}

RoundTime ConstantCost::round_of_replicate(std::size_t /*index*/, const RoundPoint& /*point*/) const {
  throw std::out_of_range("ConstantCost::round_of_replicate: a constant cost has no replicates");
}

}  // namespace specdec::cost
