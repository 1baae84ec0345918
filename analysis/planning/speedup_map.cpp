#include "analysis/planning/speedup_map.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

/// Cost per token of one gamma, a line in c, and the c up to which it is best.
struct CostLine {
  std::int64_t gamma;
  double at_zero;
  double slope;
  double best_up_to;
};

/// The lower envelope for c > 0 in order of gamma, and thus of falling c.
std::vector<CostLine> envelope(const core::AcceptanceRate& rate, const std::vector<double>& fixed_costs) {
  std::vector<CostLine> lines = {{0, 1, 0, std::numeric_limits<double>::infinity()}};
  for (std::size_t g = 1; g < fixed_costs.size(); ++g) {
    const auto gamma = static_cast<std::int64_t>(g);
    const double tokens = theory::expected_tokens(rate, gamma);
    CostLine line = {gamma, fixed_costs[g] / tokens, static_cast<double>(gamma) / tokens, 0};
    const auto crossing = [&] {
      const CostLine& last = lines.back();
      return (last.at_zero - line.at_zero) / (line.slope - last.slope);
    };
    if (!(crossing() > 0)) continue;
    while (lines.size() > 1 && crossing() >= lines.back().best_up_to) lines.pop_back();
    line.best_up_to = crossing();
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<GammaBoundary> gamma_boundaries(const std::vector<double>& rates, const std::vector<std::int64_t>& gammas,
                                            const core::StepCost& cost, std::int64_t max_gamma) {
  core::require_in("gamma_boundaries", "max_gamma", max_gamma, std::int64_t{1}, largest_mapped_gamma);
  core::StepCost without_drafts = cost;
  without_drafts.c = 0;
  std::vector<double> fixed_costs;
  for (std::int64_t gamma = 0; gamma <= max_gamma; ++gamma) fixed_costs.push_back(without_drafts(gamma));
  std::vector<GammaBoundary> boundaries;
  for (const std::int64_t gamma : gammas) {
    core::require_in("gamma_boundaries", "gamma", gamma, std::int64_t{1}, max_gamma);
    boundaries.push_back({gamma, {}});
  }
  for (const double rate : rates) {
    const std::vector<CostLine> best = envelope(core::AcceptanceRate(rate), fixed_costs);
    for (GammaBoundary& boundary : boundaries) {
      const auto reached =
          std::find_if(best.begin(), best.end(), [&](const CostLine& line) { return line.gamma >= boundary.gamma; });
      boundary.c.push_back(reached == best.end() ? 0 : reached->best_up_to);
    }
  }
  return boundaries;
}

SpeedupMap speedup_map(const std::vector<double>& rates, const std::vector<double>& costs, const core::StepCost& cost,
                       std::int64_t max_gamma) {
  core::require_in("speedup_map", "max_gamma", max_gamma, std::int64_t{1}, largest_mapped_gamma);
  SpeedupMap map;
  SearchSpace space{cost, max_gamma};
  for (const double c : costs) {
    space.cost.c = c;
    for (const double rate : rates) {
      const theory::OptimalGamma best = best_gamma(core::AcceptanceRate(rate), space);
      map.speedup.push_back(best.speedup);
      map.gamma.push_back(best.gamma);
    }
  }
  return map;
}

}  // namespace specdec::planning
