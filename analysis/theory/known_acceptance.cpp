#include "analysis/theory/known_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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
std::vector<double> cost_table(std::int64_t max_gamma, std::size_t length, const core::StepCost& cost) {
  const std::int64_t last = std::min(max_gamma, static_cast<std::int64_t>(length));
  std::vector<double> table;
  for (std::int64_t g = 0; g <= last; ++g) table.push_back(cost(g));
  return table;
}

/// V(0), with decide(t, gamma) called for each position from the last to the first.
///
/// With d(t) = V(t) - V(t+1), what position t adds to the cost of the text, the recursion becomes
///
///   d(t) = min_g cost(g) - A_g(t),   A_g(t) = sum_{k=1..g} S_k d(t+k) = a_t (d(t+1) + A_(g-1)(t+1)),   A_0 = 0
///
/// whose terms stay of the size of a step's cost however long the text is.
template <class Decide>
double solve(std::string_view function, std::span<const double> acceptance, std::int64_t max_gamma,
             const core::StepCost& cost, Decide decide) {
  core::require_in(function, "max_gamma", max_gamma, 0, core::largest_integer);
  require_acceptance(function, acceptance);
  const std::vector<double> step_cost = cost_table(max_gamma, acceptance.size(), cost);
  std::vector<double> saved(step_cost.size());  // A_g of the position after t
  core::CompensatedSum total;
  double after = 0;  // d(t + 1)
  for (std::size_t t = acceptance.size(); t-- > 0;) {
    std::size_t gamma = std::min(step_cost.size(), acceptance.size() - t) - 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t g = gamma; g > 0; --g) {
      saved[g] = acceptance[t] * (after + saved[g - 1]);
      const double here = step_cost[g] - saved[g];
      gamma = here <= least ? g : gamma;
      least = std::min(here, least);
    }
    if (step_cost[0] <= least) gamma = 0;
    after = std::min(step_cost[0], least);
    total.add(after);
    decide(t, static_cast<std::int64_t>(gamma));
  }
  return total.value();
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
