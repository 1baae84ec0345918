#pragma once

#include <memory>

#include "analysis/core/lookup_law.hpp"
#include "analysis/cost/iteration_cost.hpp"
#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// Another cost, of rounds whose drafts are looked up, so that some sequences draft less than gamma or nothing. Over
/// the lengths l of the drafts of b sequences, whose mean is m,
///
///   E[T] = T(m) + (sum_l P(l) T(l) - T(m)) / max(b, 1)
///
/// T is the time of the target's pass if all sequences draft alike, linear between whole numbers. Exact for one
/// sequence and, at any batch, where T is a polynomial of degree 2 in the tokens; the lookup's own time, the overhead,
/// is that of gamma. Source: docs/theory.md#drafts-that-are-looked-up
class LookupCost final : public WrappedCost {
 public:
  /// @throws std::invalid_argument if base is null or its drafts are not looked up
  /// @throws std::domain_error if the law is outside its range
  LookupCost(std::shared_ptr<const RoundCost> base, const core::LookupLaw& law);

  RoundTime price(std::size_t version, const RoundPoint& point) const override;

 private:
  core::LookupLaw law_;
};

/// The same of whole iterations: the seconds are those of T, whatever prompts are computed beside the rounds.
class LookupIterations final : public IterationCost {
 public:
  /// @throws as LookupCost; prices throw std::domain_error for iterations that do not verify all drafts
  LookupIterations(std::shared_ptr<const IterationCost> base, const core::LookupLaw& law);

  std::size_t replicates() const override { return base_->replicates(); }
  double price(std::size_t version, const Iteration& iteration) const override;

 private:
  std::shared_ptr<const IterationCost> base_;
  core::LookupLaw law_;
};

}  // namespace specdec::cost
