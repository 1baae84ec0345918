#pragma once

#include "analysis/core/step_cost.hpp"
#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// The paper's constants of a deployment, and the way the drafts are made.
struct ConstantOptions {
  /// c, v and overhead, in target steps.
  core::StepCost step = {};
  DraftKind kind = DraftKind::model;
};

/// Multiples of a plain target step, whatever batch and context:
///
///   target = v(gamma + 1);   draft = c passes(gamma);   overhead;   1, 0, 0 at gamma = 0
///
/// passes is draft_passes(), each of which costs c whatever it runs over. For gamma passes, v = 1 and no overhead the
/// sum is the denominator 1 + c gamma of Theorem 3.8. Beyond the last point of v each replicate has a law of its own,
/// pass_beyond.
/// Source:   Leviathan et al. 2023, Theorem 3.8; docs/theory.md#cost-of-a-round
class ConstantCost final : public RoundCost {
 public:
  /// @throws std::domain_error if c or overhead is NaN, negative or infinite
  explicit ConstantCost(ConstantOptions options);

  std::string_view name() const override { return "constant"; }
  bool in_seconds() const override { return false; }
  DraftKind kind() const override { return options_.kind; }
  CostOrigin origin() const override { return CostOrigin::stated; }
  std::size_t replicates() const override;
  RoundTime price(std::size_t version, const RoundPoint& point) const override;
  bool extrapolates(const RoundPoint& point) const override;

  const ConstantOptions& options() const { return options_; }

 private:
  ConstantOptions options_;
};

}  // namespace specdec::cost
