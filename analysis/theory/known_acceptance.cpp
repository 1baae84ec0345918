#include "analysis/theory/known_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {

KnownAcceptanceProgram known_acceptance_program(std::span<const double> acceptance, std::int64_t max_gamma,
                                                const core::StepCost& cost) {
  constexpr std::string_view function = "known_acceptance_program";
  core::require_in(function, "max_gamma", max_gamma, 0, core::largest_integer);
  for (std::size_t t = 0; t < acceptance.size(); ++t)
    if (!(0 <= acceptance[t] && acceptance[t] <= 1))
      core::require_in(function, fmt::format("acceptance at position {}", t), acceptance[t], 0, 1);
  std::vector<double> step_cost;
  for (std::int64_t g = 0; g <= std::min(max_gamma, std::ssize(acceptance)); ++g) step_cost.push_back(cost(g));
  // With d(t) = V(t) - V(t+1), what position t adds to the cost of the text, the recursion becomes
  //   d(t) = min_g cost(g) - A_g(t),   A_g(t) = sum_{k=1..g} S_k d(t+k) = a_t (d(t+1) + A_(g-1)(t+1)),   A_0 = 0
  // whose terms stay of the size of a step's cost however long the text is.
  KnownAcceptanceProgram program;
  program.gammas.resize(acceptance.size());
  std::vector<double> saved(step_cost.size());  // A_g of the position behind t
  core::CompensatedSum total;
  double after = 0;  // d(t + 1)
  for (std::size_t t = acceptance.size(); t-- > 0;) {
    const std::size_t last = std::min(step_cost.size() - 1, acceptance.size() - 1 - t);
    for (std::size_t g = last; g > 0; --g) saved[g] = acceptance[t] * (after + saved[g - 1]);
    std::size_t best = 0;
    for (std::size_t g = 1; g <= last; ++g) {
      if (step_cost[g] - saved[g] < step_cost[best] - saved[best]) best = g;
    }
    after = step_cost[best] - saved[best];
    total.add(after);
    program.gammas[t] = static_cast<std::int64_t>(best);
  }
  program.cost = total.value();
  return program;
}

}  // namespace specdec::theory
