#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// Another cost whose rounds take another time, and which is the same in all else. Whoever derives from it says what
/// rounds take.
class WrappedCost : public RoundCost {
 public:
  std::string_view name() const override { return base_->name(); }
  bool in_seconds() const final { return base_->in_seconds(); }
  DraftKind kind() const final { return base_->kind(); }
  CostOrigin origin() const final { return base_->origin(); }
  bool extrapolates(const RoundPoint& point) const final { return base_->extrapolates(point); }
  std::string about(double batch, double context) const final { return base_->about(batch, context); }
  bool parts_known(const RoundPoint& point) const override { return base_->parts_known(point); }
  double usual_context() const final { return base_->usual_context(); }
  std::size_t replicates() const final { return base_->replicates(); }
  std::span<const Note> findings() const final { return base_->findings(); }
  std::string impossible() const final { return base_->impossible(); }

 protected:
  /// @throws std::invalid_argument if base is null
  explicit WrappedCost(std::shared_ptr<const RoundCost> base) : base_(std::move(base)) {
    if (!base_) throw std::invalid_argument("WrappedCost: base is null, but must be a cost");
  }

  const RoundCost& base() const { return *base_; }

 private:
  std::shared_ptr<const RoundCost> base_;
};

}  // namespace specdec::cost
