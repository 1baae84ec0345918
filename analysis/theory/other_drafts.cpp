#include "analysis/theory/other_drafts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::theory {
namespace {

/// cost(gamma) with a drafting time other than c gamma; 1 at gamma = 0.
double cost_with_drafting(const core::StepCost& cost, std::int64_t gamma, double drafting) {
  cost(gamma);  // rejects values out of range
  return gamma == 0 ? 1 : cost.verification(gamma + 1) + drafting + cost.overhead;
}

}  // namespace

core::AcceptanceRate uniform_draft_acceptance(const core::TargetDistribution& p) {
  const double share = 1 / static_cast<double>(p.size());
  core::CompensatedSum accepted;
  core::CompensatedSum rejected;
  for (const double probability : p.probabilities()) {
    accepted.add(std::min(probability, share));
    rejected.add(std::max(0.0, share - probability));
  }
  return core::AcceptanceRate::from_masses(accepted.value(), rejected.value());
}

std::vector<double> stationary_law(std::span<const double> transitions, std::int64_t states) {
  core::require_in("stationary_law", "states", states, 1, 1'000'000);
  const auto size = static_cast<std::size_t>(states);
  core::require_same_size("stationary_law", "transitions", transitions.size(), "square of the states", size * size);
  std::vector<double> flow(transitions.begin(), transitions.end());
  for (std::size_t row = 0; row < size; ++row) {
    try {
      core::TargetDistribution checked(transitions.subspan(row * size, size));
    } catch (const std::domain_error& error) {
      throw std::domain_error(fmt::format("stationary_law: row {}: {}", row, error.what()));
    }
  }
  // Eliminate the last state, passing its visits on to its successors; then the next one.
  for (std::size_t last = size - 1; last > 0; --last) {
    core::CompensatedSum leaving;
    for (std::size_t to = 0; to < last; ++to) leaving.add(flow[last * size + to]);
    if (!(leaving.value() > 0))
      throw std::domain_error(
          fmt::format("stationary_law: state {} reaches none before it, but the chain must be irreducible", last));
    for (std::size_t from = 0; from < last; ++from) {
      const double visits = flow[from * size + last] /= leaving.value();
      for (std::size_t to = 0; to < last; ++to) flow[from * size + to] += visits * flow[last * size + to];
    }
  }
  std::vector<double> law(size, 0.0);
  law[0] = 1;
  core::CompensatedSum total;
  total.add(1);
  for (std::size_t state = 1; state < size; ++state) {
    for (std::size_t from = 0; from < state; ++from) law[state] += law[from] * flow[from * size + state];
    total.add(law[state]);
  }
  for (double& probability : law) probability /= total.value();
  return law;
}

double copying_speedup(double match_rate, const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                       const core::StepCost& cost) {
  core::require_in("copying_speedup", "match_rate", match_rate, 0, 1);
  return (match_rate * expected_tokens(acceptance, gamma) + (1 - match_rate)) /
         (match_rate * cost(gamma) + (1 - match_rate));
}

double parallel_draft_speedup(const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                              const core::StepCost& cost) {
  core::require_in("parallel_draft_speedup", "gamma", gamma, 0, core::largest_integer - 1);
  return expected_tokens(acceptance, gamma) / cost_with_drafting(cost, gamma, cost.c);
}

double hierarchical_speedup(const core::AcceptanceProfile& acceptance, std::int64_t gamma, const core::StepCost& cost,
                            const InnerDraft& inner) {
  core::require_in("hierarchical_speedup", "gamma", gamma, 0, longest_generation);
  if (gamma == 0) return 1;
  const double drafting = finite_generation(inner.acceptance, inner.gamma, gamma, inner.cost).expected_cost;
  return expected_tokens(acceptance, gamma) / cost_with_drafting(cost, gamma, cost.c * drafting);
}

}  // namespace specdec::theory
