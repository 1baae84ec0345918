#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analysis/theory/verification_budget.hpp"
#include "sim/batch_verification.hpp"
#include "sim/drafting.hpp"

/// Rules for how many drafts of each text of a batch are verified: what engines do, and a bound on what can be done.
namespace specdec::validation {

/// The drafts of a policy from each place of a recorded text, if all of them are accepted: gamma, or fewer where it
/// stops. What stops before a token is known by place alone.
///
/// @param probability  q_t(x_t), where the policy stops after a token; or empty
/// @param left_out     places before which it stops
std::vector<std::int64_t> drafts_from(std::int64_t gamma, const sim::DraftingPolicy& policy,
                                      std::span<const double> probability, const std::vector<bool>& left_out);

/// A policy that drafts for one text at a time.
class PolicyRule final : public sim::BatchRule {
 public:
  /// @param gamma  of the first round, >= 0
  /// @param next_gamma  sim::DraftingPolicy::next_gamma
  /// @param most  the drafts of each place, if not gamma; must outlive the object
  explicit PolicyRule(std::int64_t gamma, decltype(sim::DraftingPolicy::next_gamma) next_gamma = {},
                      std::span<const std::int64_t> most = {})
      : gamma_(gamma), next_gamma_(std::move(next_gamma)), most_(most) {}
  sim::BatchDecision decide(std::span<const sim::BatchedPlace> batch) override;
  void observe(std::span<const sim::BatchedPlace> batch, const sim::BatchDecision& decision,
               std::span<const std::int64_t> accepted) override;

 private:
  std::int64_t gamma_;
  decltype(sim::DraftingPolicy::next_gamma) next_gamma_;
  std::span<const std::int64_t> most_;
};

/// gamma tokens are drafted for every text, and the batch's drafts compete for a budget: the most probable to be
/// reached and accepted are verified, as many as make most tokens per cost (theory::best_budget).
///
/// Classes derived from it say how acceptance is estimated. As in vLLM, the budget rests on the estimates of the round
/// before, 1 for a new text, and who gets it on those of this round, since a server reads the former while it computes
/// the latter.
///
/// Source:   docs/reference/methods.md#verification-within-a-budget
class BudgetRule : public sim::BatchRule {
 public:
  sim::BatchDecision decide(std::span<const sim::BatchedPlace> batch) final;

 protected:
  /// @param gamma  drafted tokens, >= 0  @param cost  must outlive the object
  BudgetRule(std::int64_t gamma, const sim::BatchCost& cost) : gamma_(gamma), cost_(cost) {}
  std::int64_t gamma() const { return gamma_; }
  /// The estimated probability that the draft at a depth (0-based) is accepted if it is reached, [0, 1].
  virtual double estimate(const sim::BatchedPlace& at, std::int64_t depth) const = 0;
  /// True if the budget rests on this round's estimates, too.
  virtual bool sees_at_once() const { return false; }

 private:
  std::int64_t gamma_;
  const sim::BatchCost& cost_;
  /// Survivals of each text by its number in the round before; empty for a new one.
  theory::Survivals last_;
};

/// Knows the probability of every draft of its text: the bound.
class KnownBudgetRule final : public BudgetRule {
 public:
  KnownBudgetRule(std::int64_t gamma, const sim::BatchCost& cost) : BudgetRule(gamma, cost) {}
  void observe(std::span<const sim::BatchedPlace>, const sim::BatchDecision&, std::span<const std::int64_t>) override {}

 private:
  double estimate(const sim::BatchedPlace& at, std::int64_t depth) const override;
  bool sees_at_once() const override { return true; }
};

/// Counts what was accepted by group of texts and position: vLLM's estimate for suffix decoding, whose groups are the
/// draft's source and the length of the match.
///
///   (accepted + 1) / (reached + 2), both halved every 1024 rounds
class CountingBudgetRule final : public BudgetRule {
 public:
  CountingBudgetRule(std::int64_t gamma, const sim::BatchCost& cost) : BudgetRule(gamma, cost) {}
  void observe(std::span<const sim::BatchedPlace> batch, const sim::BatchDecision& decision,
               std::span<const std::int64_t> accepted) override;

 private:
  struct Counts {
    double accepted = 0, reached = 0;
  };
  double estimate(const sim::BatchedPlace& at, std::int64_t depth) const override;
  /// Shape: (groups seen), then (positions)
  std::vector<std::vector<Counts>> counts_;
  std::int64_t rounds_ = 0;
};

/// One gamma for the whole batch by a moving average of its accepted drafts: SGLang's adaptive steps.
///
///   m <- 0.8 m + 0.2 (accepted drafts per text), m = gamma - 1 to begin with
///
/// After 10 rounds, in every fifth: down to the next smaller candidate s while m <= s - 0.5, then up from the present
/// one s while m > s - 0.75. Candidates are 1, 3 and 7 as far as they are below gamma, and gamma.
class MovingAverageRule final : public sim::BatchRule {
 public:
  /// @param gamma  the first and the largest, >= 1
  explicit MovingAverageRule(std::int64_t gamma);
  sim::BatchDecision decide(std::span<const sim::BatchedPlace> batch) override;
  void observe(std::span<const sim::BatchedPlace> batch, const sim::BatchDecision& decision,
               std::span<const std::int64_t> accepted) override;

 private:
  std::vector<std::int64_t> candidates_;
  std::size_t current_;
  double average_;
  std::int64_t rounds_ = 0;
};

}  // namespace specdec::validation
