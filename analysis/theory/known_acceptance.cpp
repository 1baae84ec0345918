#include "analysis/theory/known_acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

/// Texts that are solved side by side.
constexpr std::size_t texts_side_by_side = 8;

/// V(0) of each of the texts. decide(t, last, saved, least) is called for the positions of a single text from its last
/// to its first: a step with g <= last drafts from t on leaves step_cost[g] - saved[g] of d(t), at least `least`.
///
/// With d(t) = V(t) - V(t+1), what position t adds to the cost of the text, the recursion becomes
///
///   d(t) = min_g cost(g) - A_g(t),   A_g(t) = sum_{k=1..g} S_k d(t+k) = a_t (d(t+1) + A_(g-1)(t+1)),   A_0 = 0
///
/// whose terms stay of the size of a step's cost however long the text is.
template <std::size_t width, class Decide>
void solve(std::span<const std::span<const double>> texts, std::span<const double> step_cost, double* costs,
           Decide decide) {
  using Lanes = std::array<double, width>;
  std::vector<Lanes> saved(step_cost.size(), Lanes{});  // A_g of the position after t
  std::array<core::CompensatedSum, width> totals;
  Lanes after{};  // d(t + 1)
  std::size_t longest = 0;
  for (const std::span<const double> text : texts) longest = std::max(longest, text.size());
  for (std::size_t behind = 0; behind < longest; ++behind) {  // positions behind t, in every text
    const std::size_t last = std::min(step_cost.size() - 1, behind);
    Lanes acceptance{}, least;
    for (std::size_t l = 0; l < texts.size(); ++l) {
      if (behind < texts[l].size()) acceptance[l] = texts[l][texts[l].size() - 1 - behind];
    }
    least.fill(step_cost[0]);
    for (std::size_t g = last; g > 0; --g) {
      for (std::size_t l = 0; l < width; ++l) {
        saved[g][l] = acceptance[l] * (after[l] + saved[g - 1][l]);
        const double here = step_cost[g] - saved[g][l];
        least[l] = here < least[l] ? here : least[l];
      }
    }
    after = least;
    for (std::size_t l = 0; l < texts.size(); ++l) {
      if (behind < texts[l].size()) totals[l].add(least[l]);
    }
    decide(longest - 1 - behind, last, saved, least);
  }
  for (std::size_t l = 0; l < texts.size(); ++l) costs[l] = totals[l].value();
}

void require_program(std::string_view function, std::span<const double> acceptance, std::int64_t max_gamma) {
  core::require_in(function, "max_gamma", max_gamma, 0, core::largest_integer);
  require_acceptance(function, acceptance);
}

}  // namespace

KnownAcceptanceProgram known_acceptance_program(std::span<const double> acceptance, std::int64_t max_gamma,
                                                const core::StepCost& cost) {
  require_program("known_acceptance_program", acceptance, max_gamma);
  KnownAcceptanceProgram program;
  program.gammas.resize(acceptance.size());
  const std::vector<double> step_cost = cost_table(max_gamma, acceptance.size(), cost);
  solve<1>({&acceptance, 1}, step_cost, &program.cost,
           [&](std::size_t t, std::size_t last, const auto& saved, const auto& least) {
             std::size_t gamma = 0;
             while (gamma < last && step_cost[gamma] - saved[gamma][0] > least[0]) ++gamma;
             program.gammas[t] = static_cast<std::int64_t>(gamma);
           });
  return program;
}

std::vector<double> known_acceptance_costs(std::span<const std::span<const double>> texts, std::int64_t max_gamma,
                                           const core::StepCost& cost) {
  std::size_t longest = 0;
  for (const std::span<const double> text : texts) {
    require_program("known_acceptance_costs", text, max_gamma);
    longest = std::max(longest, text.size());
  }
  const std::vector<double> step_cost = cost_table(max_gamma, longest, cost);
  std::vector<double> costs(texts.size());
  for (std::size_t first = 0; first < texts.size(); first += texts_side_by_side) {
    const auto together = texts.subspan(first, std::min(texts_side_by_side, texts.size() - first));
    solve<texts_side_by_side>(together, step_cost, costs.data() + first, [](auto&&...) {});
  }
  return costs;
}

double known_acceptance_cost(std::span<const double> acceptance, std::int64_t max_gamma, const core::StepCost& cost) {
  return known_acceptance_costs({&acceptance, 1}, max_gamma, cost).front();
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
