#include "analysis/cost/anchored_cost.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

constexpr std::uint32_t shape_stream = 56;

bool same_place(const RoundPoint& a, const RoundPoint& b) {
  return a.gamma == b.gamma && a.batch == b.batch && a.context == b.context;
}

}  // namespace

AnchoredCost::AnchoredCost(std::shared_ptr<const FittedCost> fit, std::shared_ptr<const RoundCost> shape,
                           std::uint64_t seed)
    : WrappedCost(fit), fit_(std::move(fit)), shape_(std::move(shape)), seed_(seed) {
  if (!shape_) throw std::invalid_argument("AnchoredCost: shape is null, but must be a cost");
  if (!shape_->in_seconds()) throw std::invalid_argument("AnchoredCost: the shape knows no seconds");
}

RoundPoint AnchoredCost::nearest(const RoundPoint& point) const {
  require_legal(point);
  const FittedRanges ranges = fit_->ranges(point.gamma > 0);
  RoundPoint near = point;
  const auto gamma = static_cast<double>(point.gamma);
  if (gamma < ranges.gammas.lo) near.gamma = static_cast<std::int64_t>(std::ceil(ranges.gammas.lo));
  if (gamma > ranges.gammas.hi) near.gamma = static_cast<std::int64_t>(std::floor(ranges.gammas.hi));
  near.batch = std::clamp(point.batch, ranges.batches.lo, ranges.batches.hi);
  if (ranges.contexts) near.context = std::clamp(point.context, ranges.contexts->lo, ranges.contexts->hi);
  return near;
}

double AnchoredCost::shape_error(const RoundPoint& point, const RoundPoint& anchor) const {
  const double correlation = FittedCost::correlation(point, anchor);
  return core::half_of_both(usual_shape_error * std::sqrt(1 - correlation * correlation),
                            fit_->step_between(point, anchor));
}

double AnchoredCost::drawn_factor(std::size_t index, const RoundPoint& point, const RoundPoint& anchor) const {
  const ReplicateDraws draws(seed_, shape_stream, static_cast<std::uint32_t>(index));
  return std::exp(shape_error(point, anchor) * draws.standard_normal(point.gamma > 0 ? 1 : 0));
}

RoundTime AnchoredCost::price(std::size_t version, const RoundPoint& point) const {
  const RoundPoint anchor = nearest(point);
  const RoundTime fitted = fit_->price(version, anchor);
  if (same_place(point, anchor)) return fitted;
  const std::size_t shapes = shape_->replicates();
  const std::size_t its = version == 0 || shapes == 0 ? 0 : 1 + (version - 1) % shapes;
  const double factor = version == 0 ? 1 : drawn_factor(version - 1, point, anchor);
  return fitted.times(factor * (shape_->price(its, point).total() / shape_->price(its, anchor).total()));
}

void AnchoredCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  const RoundPoint anchor = nearest(point);
  fit_->totals_of_replicates(anchor, totals);
  if (same_place(point, anchor)) return;
  std::vector<double> above(std::max<std::size_t>(1, shape_->replicates())), below(above.size());
  if (shape_->replicates() == 0) {
    above[0] = shape_->round(point).total();
    below[0] = shape_->round(anchor).total();
  } else {
    shape_->totals_of_replicates(point, above);
    shape_->totals_of_replicates(anchor, below);
  }
  for (std::size_t i = 0; i < totals.size(); ++i)
    totals[i] *= above[i % above.size()] / below[i % below.size()] * drawn_factor(i, point, anchor);
}

}  // namespace specdec::cost
