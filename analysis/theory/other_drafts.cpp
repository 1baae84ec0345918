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
