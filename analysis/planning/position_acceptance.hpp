#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/replay_estimates.hpp"

namespace specdec::planning {

/// The acceptance of drafts by their position in the round, at the largest gamma.
struct PositionAcceptance {
  std::int64_t position = 1;
  /// P(this draft and all before it are accepted), over the rounds that draft at least this far.
  estimate::Interval unconditional;
  /// P(this draft is accepted | all before it are).
  std::optional<estimate::Interval> conditional;
  /// Interval of `conditional`, covering both ends; empty if one of the two has none, as for a single sequence.
  std::optional<estimate::Interval> conditional_ci95;
};

/// @param lower, upper  replayed by position and finished; `upper` is null unless acceptance is known as a bracket
/// @param gamma         the largest one replayed, >= 1
std::vector<PositionAcceptance> position_acceptance(const estimate::ReplayEstimates& lower,
                                                    const estimate::ReplayEstimates* upper, std::int64_t gamma);

}  // namespace specdec::planning
