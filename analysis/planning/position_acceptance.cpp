#include "analysis/planning/position_acceptance.hpp"

#include <algorithm>
#include <cstddef>

#include "analysis/estimate/two_rate_fit.hpp"

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
  const auto fit = upper ? std::nullopt : two_rates_of_rounds(low, gamma);
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
    if (fit) {
      const double reached = theory::survival(*fit, gamma, j - 1);
      if (reached > 0) row.two_state = theory::survival(*fit, gamma, j) / reached;
    }
    positions.push_back(row);
  }
  return positions;
}

std::optional<theory::TwoRates> two_rates_of_rounds(const theory::ReplayedRounds& rounds, std::int64_t gamma) {
  estimate::RoundEnds ends;
  double alive = rounds.steps(gamma);
  for (std::int64_t n = 0; n <= gamma; ++n) {
    const double going = n < gamma ? rounds.examined(gamma, n + 1) : 0;
    // Near the end of a text fewer tokens are drafted.
    ends.completed.push_back(std::max(0.0, alive - going));
    if (n == gamma) break;
    alive = rounds.accepted(gamma, n + 1);
    ends.rejected.push_back(std::max(0.0, going - alive));
  }
  const auto mixture = estimate::two_rates(ends);
  if (!mixture) return std::nullopt;
  std::vector<double> all_of_gamma(static_cast<std::size_t>(gamma) + 1);
  all_of_gamma.back() = 1;
  return estimate::rates_of_tokens(*mixture, all_of_gamma);
}

}  // namespace specdec::planning
