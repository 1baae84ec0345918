#include "analysis/theory/known_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/theory/streaming_replay.hpp"

namespace specdec::theory {
namespace {

void require_acceptance(std::string_view function, std::span<const double> acceptance) {
  for (std::size_t t = 0; t < acceptance.size(); ++t)
    if (!(0 <= acceptance[t] && acceptance[t] <= 1))
      core::require_in(function, fmt::format("acceptance at position {}", t), acceptance[t], 0, 1);
}

/// Cost of a step with g = 0, 1, ... drafts, up to the most that any step of the text may need.
std::vector<long double> cost_table(std::int64_t max_gamma, std::size_t length, const core::StepCost& cost) {
  const std::int64_t last = std::min(max_gamma, static_cast<std::int64_t>(length));
  std::vector<long double> table;
  for (std::int64_t g = 0; g <= last; ++g) table.push_back(cost.extended(g));
  return table;
}

struct Choice {
  long double cost;
  std::int64_t gamma;
};

/// The best step from the front of `acceptance`; remaining[k] = V(t + k).
Choice best_step(std::span<const double> acceptance, std::span<const long double> step_cost,
                 std::span<const long double> remaining) {
  Choice best{step_cost[0] + remaining[1], 0};
  long double survives = 1;  // S_g
  long double rejected = 0;  // sum of (S_(k-1) - S_k) V(t + k) up to g
  const std::size_t last = std::min(step_cost.size(), acceptance.size()) - 1;
  for (std::size_t g = 1; g <= last && survives > 0; ++g) {
    rejected += survives * (1 - static_cast<long double>(acceptance[g - 1])) * remaining[g];
    survives *= acceptance[g - 1];
    const long double cost = step_cost[g] + rejected + survives * remaining[g + 1];
    if (cost < best.cost) best = {cost, static_cast<std::int64_t>(g)};
  }
  return best;
}

/// V(0), with decide(t, gamma) called for each position from the last to the first.
template <class Decide>
double solve(std::string_view function, std::span<const double> acceptance, std::int64_t max_gamma,
             const core::StepCost& cost, Decide decide) {
  core::require_in(function, "max_gamma", max_gamma, 0, core::largest_integer);
  require_acceptance(function, acceptance);
  const std::vector<long double> step_cost = cost_table(max_gamma, acceptance.size(), cost);
  std::vector<long double> remaining(acceptance.size() + 1, 0.0L);
  for (std::size_t t = acceptance.size(); t-- > 0;) {
    const Choice best = best_step(acceptance.subspan(t), step_cost, std::span(remaining).subspan(t));
    remaining[t] = best.cost;
    decide(t, best.gamma);
  }
  return static_cast<double>(remaining[0]);
}

}  // namespace

KnownAcceptanceProgram known_acceptance_program(std::span<const double> acceptance, std::int64_t max_gamma,
                                                const core::StepCost& cost) {
  KnownAcceptanceProgram program;
  program.gammas.resize(acceptance.size());
  program.cost = solve("known_acceptance_program", acceptance, max_gamma, cost,
                       [&](std::size_t t, std::int64_t gamma) { program.gammas[t] = gamma; });
  return program;
}

double known_acceptance_cost(std::span<const double> acceptance, std::int64_t max_gamma, const core::StepCost& cost) {
  return solve("known_acceptance_cost", acceptance, max_gamma, cost, [](std::size_t, std::int64_t) {});
}

OutcomeOracle outcome_oracle(std::span<const double> acceptance) {
  require_acceptance("outcome_oracle", acceptance);
  if (acceptance.empty()) return {};
  core::CompensatedSum rejected;
  core::CompensatedSum accepted;
  for (const double a : acceptance.first(acceptance.size() - 1)) {
    rejected.add(1 - a);
    accepted.add(a);
  }
  return {1 + rejected.value(), accepted.value()};
}

double outcome_oracle_cost(const ReplayedRounds& rounds, std::int64_t gamma, const core::StepCost& cost) {
  double total = 0;
  double at_least = rounds.steps(gamma);
  for (std::int64_t j = 0; j <= gamma; ++j) {
    const double more = j < gamma ? rounds.accepted(gamma, j + 1) : 0.0;
    total += std::max(0.0, at_least - more) * cost(j);
    at_least = more;
  }
  return total;
}

}  // namespace specdec::theory
