#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "analysis/core/lookup_law.hpp"
#include "analysis/cost/wrapped_cost.hpp"

namespace specdec::cost {

/// How many tokens a step drafts on average where drafts may be shorter than asked for, or missing, from counts at one
/// gamma or several:
///
///   at a gamma that was counted: the mean of the counts
///   below all of them or beyond: by the LookupLaw that is counted at the nearest
///   between two of them: linearly between what the laws of both say
///
/// So the tokens that a step verifies beyond the longest gamma that ran hardly grow where drafts end before it.
/// Source:   docs/theory.md#drafts-that-are-looked-up
class MeanDrafts {
 public:
  /// @param gamma     the longest draft of these steps, >= 1
  /// @param steps     with and without a draft, > 0
  /// @param rounds    those with a draft, [0, steps]
  /// @param tokens    of all drafts, [0, gamma rounds]
  /// @param accepted  of them, [0, tokens]
  /// @throws std::domain_error for a gamma below 1
  void add(std::int64_t gamma, double steps, double rounds, double tokens, double accepted);

  /// Whether some drafts were shorter than asked for, or missing.
  bool some_are_short() const;

  /// @param gamma  >= 0
  /// @pre add() was called
  /// @return [0, gamma]
  double operator()(double gamma) const;

 private:
  struct Counted {
    double steps = 0, rounds = 0, tokens = 0, accepted = 0;
    core::LookupLaw law = {};
  };

  std::map<double, Counted> by_gamma_;
};

/// Another cost, of rounds whose drafts are shorter than gamma on average: its rounds of that mean, linear between
/// whole numbers. Source: docs/theory.md#drafts-that-are-looked-up
class MeanDraftsCost final : public WrappedCost {
 public:
  /// @param mean_drafts  as FitOptions::mean_drafts
  /// @throws std::invalid_argument if one of them is null
  MeanDraftsCost(std::shared_ptr<const RoundCost> base, std::function<double(double gamma)> mean_drafts);

  RoundTime price(std::size_t version, const RoundPoint& point) const override;

 private:
  std::function<double(double gamma)> mean_drafts_;
};

}  // namespace specdec::cost
