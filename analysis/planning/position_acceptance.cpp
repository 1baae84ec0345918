#include "analysis/planning/position_acceptance.hpp"

#include <algorithm>
#include <cstddef>

namespace specdec::planning {
namespace {

estimate::Interval between(double a, double b) { return {std::min(a, b), std::max(a, b)}; }

std::optional<estimate::Interval> covering(const std::optional<estimate::Estimate>& a,
                                           const std::optional<estimate::Estimate>& b) {
  if (!a || !b || !a->ci95 || !b->ci95) return std::nullopt;
  return hull(*a->ci95, *b->ci95);
}

}  // namespace

std::vector<PositionAcceptance> position_acceptance(const estimate::ReplayEstimates& lower,
                                                    const estimate::ReplayEstimates* upper, std::int64_t gamma) {
  const theory::ReplayedRounds low = lower.total();
  const theory::ReplayedRounds high = upper ? upper->total() : low;
  const auto low_rates = lower.conditional_acceptance();
  const auto high_rates = upper ? upper->conditional_acceptance() : low_rates;
  std::vector<PositionAcceptance> positions;
  for (std::int64_t j = 1; j <= gamma; ++j) {
    const auto rate = [&](const theory::ReplayedRounds& rounds, double of) { return rounds.accepted(gamma, j) / of; };
    PositionAcceptance row;
    row.position = j;
    row.unconditional = between(rate(low, low.steps(gamma)), rate(high, high.steps(gamma)));
    if (low.examined(gamma, j) > 0 && high.examined(gamma, j) > 0) {
      const auto place = static_cast<std::size_t>(j - 1);
      row.conditional = between(rate(low, low.examined(gamma, j)), rate(high, high.examined(gamma, j)));
      row.conditional_ci95 = covering(low_rates[place], high_rates[place]);
    }
    positions.push_back(row);
  }
  return positions;
}

}  // namespace specdec::planning
