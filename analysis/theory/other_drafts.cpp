#include "analysis/theory/other_drafts.hpp"

#include "analysis/core/checks.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::theory {
double copying_speedup(double match_rate, const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                       const core::StepCost& cost) {
  core::require_in("copying_speedup", "match_rate", match_rate, 0, 1);
  return (match_rate * expected_tokens(acceptance, gamma) + (1 - match_rate)) /
         (match_rate * cost(gamma) + (1 - match_rate));
}

double parallel_draft_speedup(const core::AcceptanceProfile& acceptance, std::int64_t gamma,
                              const core::StepCost& cost) {
  core::require_in("parallel_draft_speedup", "gamma", gamma, 0, core::largest_integer - 1);
  cost(gamma);  // rejects values out of range
  if (gamma == 0) return 1;
  return expected_tokens(acceptance, gamma) / (cost.verification(gamma + 1) + cost.c + cost.overhead);
}

}  // namespace specdec::theory
