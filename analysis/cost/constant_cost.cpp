#include "analysis/cost/constant_cost.hpp"

#include <utility>

namespace specdec::cost {

ConstantCost::ConstantCost(ConstantOptions options) : options_(std::move(options)) {
  static_cast<void>(options_.step(1));  // refuses c and overhead outside their ranges
}

RoundTime ConstantCost::price(std::size_t /*version*/, const RoundPoint& point) const {
  require_legal(point);
  if (point.gamma == 0) return {.target = 1};
  return {.target = static_cast<double>(options_.step.verification.extended(static_cast<long double>(point.gamma) + 1)),
          .draft = options_.step.c * draft_passes(options_.kind, static_cast<double>(point.gamma)),
          .overhead = options_.step.overhead};
}

bool ConstantCost::extrapolates(const RoundPoint& point) const {
  require_legal(point);
  return options_.step.extrapolates(point.gamma);
}

}  // namespace specdec::cost
