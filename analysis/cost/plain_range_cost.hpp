#pragma once

#include <functional>
#include <memory>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// Another cost whose plain steps may take longer than it says, by a factor up to one that hangs on the batch. The
/// estimate stays; in replicates the factor's logarithm is uniform:
///
///   plain step of replicate r = base's (most(batch))^u_r,  u_r evenly spread over [0, 1)
class PlainRangeCost final : public RoundCost {
 public:
  /// @param most  of a batch, >= 1
  /// @throws std::invalid_argument if base is null
  PlainRangeCost(std::shared_ptr<const RoundCost> base, std::function<double(double)> most);

  std::string_view name() const override { return base_->name(); }
  bool in_seconds() const override { return base_->in_seconds(); }
  DraftKind kind() const override { return base_->kind(); }
  CostOrigin origin() const override { return base_->origin(); }
  RoundTime round(const RoundPoint& point) const override { return base_->round(point); }
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
  double factor(std::size_t index, const RoundPoint& point) const;

  std::shared_ptr<const RoundCost> base_;
  std::function<double(double)> most_;
};

}  // namespace specdec::cost
