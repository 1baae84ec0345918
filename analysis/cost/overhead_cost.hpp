#pragma once

#include <memory>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// Another cost, and of each speculative round a part that it does not hold:
///
///   round(gamma) = base(gamma) + [gamma > 0] (seconds + steps base(0))      at the same batch and context
///
/// Source:   docs/theory.md#cost-of-a-round
class OverheadCost final : public RoundCost {
 public:
  /// @param seconds  >= 0; of a cost in plain target steps 0   @param steps  plain target steps, >= 0
  /// @throws std::invalid_argument if base is null or knows no seconds and some are given
  /// @throws std::domain_error if a value is outside its range
  OverheadCost(std::shared_ptr<const RoundCost> base, double seconds, double steps);

  std::string_view name() const override { return base_->name(); }
  bool in_seconds() const override { return base_->in_seconds(); }
  DraftKind kind() const override { return base_->kind(); }
  CostOrigin origin() const override { return base_->origin(); }
  RoundTime round(const RoundPoint& point) const override;
  bool extrapolates(const RoundPoint& point) const override { return base_->extrapolates(point); }
  std::string about_batch(double batch) const override { return base_->about_batch(batch); }
  bool answers(const RoundPoint& point) const override { return base_->answers(point); }
  bool parts_known(const RoundPoint& point) const override { return base_->parts_known(point); }
  double usual_context() const override { return base_->usual_context(); }
  std::size_t replicates() const override { return base_->replicates(); }
  RoundTime round_of_replicate(std::size_t index, const RoundPoint& point) const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;
  std::span<const Note> findings() const override { return base_->findings(); }
  std::string impossible() const override { return base_->impossible(); }

 private:
  std::shared_ptr<const RoundCost> base_;
  double seconds_ = 0, steps_ = 0;
};

}  // namespace specdec::cost
