#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// Tokens per step at one gamma, as far as a measurement determines them; all in [1, gamma + 1].
struct TokensPerStep {
  /// Point estimate, the bonus token included.
  double value = 1;
  /// The lowest and the highest value under the models that carry a measurement to another gamma; the value alone at
  /// the measured gamma.
  Interval readings = {1, 1};
  /// 95% interval from sampling alone; the value alone if acceptance is taken as exact.
  Interval ci95 = {1, 1};
  /// P(all gamma drafts of a round are accepted), [0, 1].
  double full_accepts = 0;
  /// True if gamma exceeds the longest observed draft.
  bool extrapolated = false;
  /// The ends between which the estimate lies where what was recorded leaves acceptance open, as top-k lists do; the
  /// value is then their middle, and `ci95` covers them. Empty if the value is determined.
  std::optional<Interval> bracket = {};
};

/// Tokens per step for every gamma >= 0: from a rate, counters or a replayed recording.
class AcceptanceCurve {
 public:
  virtual ~AcceptanceCurve() = default;
  /// @param gamma  >= 0; the value is 1 at gamma = 0
  /// @throws std::domain_error if gamma < 0 or beyond what the source covers
  virtual TokensPerStep tokens_per_step(std::int64_t gamma) const = 0;
  /// P(the first j drafts of a round of gamma drafts are all accepted), j = 1 .. gamma, not rising in j. By default
  /// what each draft gains, tokens_per_step(j) - tokens_per_step(j - 1): exact where acceptance depends on nothing but
  /// the position. Gains that rise are made level, so that the sum stays tokens_per_step(gamma) - 1.
  /// @throws as tokens_per_step
  virtual std::vector<double> survival(std::int64_t gamma) const;
  /// True if the acceptance of drafts beyond the observed ones was chosen, so that `readings` are within that choice.
  virtual bool assumes_beyond() const { return false; }
  /// The reason why nothing is decided by these figures, whatever their intervals; empty if there is none.
  virtual std::string refused() const { return {}; }
  /// True if nobody knows in how many rounds nothing is drafted, which are plain steps; the figures are those of rounds
  /// that all draft.
  virtual bool may_not_draft() const { return false; }
};

}  // namespace specdec::estimate
