#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/theory/two_state_acceptance.hpp"

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
  /// `conditional` from the two-state chain that fits how the rounds end; empty if none fits better than one rate,
  /// or if acceptance is bracketed.
  std::optional<double> two_state;
};

/// @param lower, upper  replayed by position and finished; `upper` is null unless acceptance is known as a bracket
/// @param gamma         the largest one replayed, >= 1
std::vector<PositionAcceptance> position_acceptance(const estimate::ReplayEstimates& lower,
                                                    const estimate::ReplayEstimates* upper, std::int64_t gamma);

/// The two-state chain, as its two rates, that maximises the likelihood of the ends of replayed rounds of this gamma.
///
/// Source:   docs/theory.md#acceptance-from-counters
/// @param rounds  replayed by position
/// @return empty if no two rates are more likely than one: conditional rates that fall with the position
std::optional<theory::TwoRates> two_rates_of_rounds(const theory::ReplayedRounds& rounds, std::int64_t gamma);

}  // namespace specdec::planning
