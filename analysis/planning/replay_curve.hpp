#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/replay_estimates.hpp"

namespace specdec::planning {

/// Acceptance from an exact replay of a recording: every gamma up to the largest one replayed is measured, none beyond
/// is known. If acceptance was recorded by the depth in the round, gammas above the last depth D are extrapolated: the
/// replay holds its acceptance, and the interval reaches down to rates that go on falling,
///
///   tau(D) + sum over j = D + 1 .. gamma of s_j,   s_j = s_(j - 1) r_j,   r_j = r_(j - 1) steepest
///   s_D = tau(D) - tau(D - 1),   r_D = s_D / (tau(D - 1) - tau(D - 2)),   steepest = 0.7, the ratio of two next-token modules
///
/// The share of full accepts is the gain over one draft less, which is exact if acceptance does not depend
/// on the position.
class ReplayCurve : public estimate::AcceptanceCurve {
 public:
  /// @param report  the replay of the recording, or of the lower ends of its brackets
  /// @param upper   the replay of the upper ends, if acceptance is known as a bracket: the interval covers both, and
  ///                the value is their middle
  /// @param rates   95% interval of the acceptance rate, within [0, 1], if known: where no draft was looked at, the
  ///                interval of tokens per step is Eq. 1 at its ends, and nothing is decided
  /// @param depths  TraceAnalysis::depths
  /// @param refused  the reason why the replay decides nothing; empty if there is none
  /// @throws std::invalid_argument if a report has no gammas, or the two differ in their number
  explicit ReplayCurve(const estimate::ReplayReport& report, const std::optional<estimate::ReplayReport>& upper = {},
                       const std::optional<estimate::Interval>& rates = {}, std::int64_t depths = 1,
                       std::string refused = {});

  /// @throws std::domain_error if gamma is outside [0, largest replayed]
  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  std::string refused() const override { return refused_; }

 private:
  void extrapolate_beyond(std::size_t depths);

  std::string refused_;
  std::vector<estimate::TokensPerStep> by_gamma_;
};

}  // namespace specdec::planning
