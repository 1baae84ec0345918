#include "analysis/cost/constant_cost.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

namespace specdec::cost {

ConstantCost::ConstantCost(ConstantOptions options) : options_(std::move(options)) {
  static_cast<void>(options_.step(1));  // refuses c and overhead outside their ranges
}

std::size_t ConstantCost::replicates() const {
  constexpr std::size_t ways_beyond = 64;
  return options_.step.extrapolates(std::numeric_limits<std::int64_t>::max()) ? ways_beyond : 0;
}

RoundTime ConstantCost::price(std::size_t version, const RoundPoint& point) const {
  require_legal(point);
  if (point.gamma == 0) return {.target = 1};
  const core::VerificationCost& verification = options_.step.verification;
  auto target = static_cast<double>(verification.extended(static_cast<long double>(point.gamma) + 1));
  if (options_.step.extrapolates(point.gamma)) {
    const core::VerificationCost::Point& last = verification.points().back();
    // Evenly over (0, 1), the middle first.
    const double share = std::fmod(0.5 + static_cast<double>(version) * std::numbers::phi, 1);
    target =
        pass_beyond(target, last.factor, static_cast<double>(last.tokens), static_cast<double>(point.gamma) + 1, share);
  }
  return {.target = target,
          .draft = options_.step.c * draft_passes(options_.kind, static_cast<double>(point.gamma)),
          .overhead = options_.step.overhead};
}

bool ConstantCost::extrapolates(const RoundPoint& point) const {
  require_legal(point);
  return options_.step.extrapolates(point.gamma);
}

}  // namespace specdec::cost
