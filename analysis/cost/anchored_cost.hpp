#pragma once

#include <memory>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// Standard deviation of ln(true / shape) far from the runs, beyond the error that the shape itself knows of.
inline constexpr double usual_shape_error = 0.1;

/// Rounds as fitted where runs were, and beyond them by the shape of another cost, scaled to the nearest of them:
///
///   round(x) = fit(x')  shape(x) / shape(x')
///
/// x' being x with gamma, batch and context each brought into the range of the runs, of those that drafted where x
/// drafts; so the two meet at the edge. Where no run says a context, the shape's is taken at x in both. A replicate
/// takes one of fit and one of shape, so that what the shape errs at both x and x' cancels, times
///
///   exp(usual_shape_error sqrt(1 - rho^2) z),   rho = exp(-(d_batch^2 + d_gamma^2 + d_context^2) / 2)
///
/// with the fit's distances between x and x' and one normal z for plain rounds and one for speculative ones.
/// Source:   docs/theory.md#cost-of-a-round
class AnchoredCost final : public WrappedCost {
 public:
  /// @throws std::invalid_argument if one of them is null or knows no seconds
  AnchoredCost(std::shared_ptr<const FittedCost> fit, std::shared_ptr<const RoundCost> shape, std::uint64_t seed = 0);

  std::string_view name() const override { return "anchored"; }
  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  bool parts_known(const RoundPoint& point) const override { return fit_->parts_known(nearest(point)); }
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;

  /// x'
  RoundPoint nearest(const RoundPoint& point) const;

 private:
  /// Standard deviation of the error that a replicate draws.
  double shape_error(const RoundPoint& point, const RoundPoint& anchor) const;
  double drawn_factor(std::size_t index, const RoundPoint& point, const RoundPoint& anchor) const;

  std::shared_ptr<const FittedCost> fit_;
  std::shared_ptr<const RoundCost> shape_;
  std::uint64_t seed_ = 0;
};

}  // namespace specdec::cost
