#pragma once

#include <cstdint>
#include <string>

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
};

/// Tokens per step for every gamma >= 0: from a rate, counters or a replayed recording.
class AcceptanceCurve {
 public:
  virtual ~AcceptanceCurve() = default;
  /// @param gamma  >= 0; the value is 1 at gamma = 0
  /// @throws std::domain_error if gamma < 0 or beyond what the source covers
  virtual TokensPerStep tokens_per_step(std::int64_t gamma) const = 0;
  /// True if the acceptance of drafts beyond the observed ones was chosen, so that `readings` are within that choice.
  virtual bool assumes_beyond() const { return false; }
  /// The reason why nothing is decided by these figures, whatever their intervals; empty if there is none.
  virtual std::string refused() const { return {}; }
};

}  // namespace specdec::estimate
