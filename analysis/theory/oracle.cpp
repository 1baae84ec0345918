#include "analysis/theory/oracle.hpp"

#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/theory/extended.hpp"
#include "analysis/theory/optimal_gamma.hpp"

namespace specdec::theory {
namespace {

void require_cost(std::string_view function, double c) {
  core::require_in(function, "c", c, 0, std::numeric_limits<double>::max());
}

// Time per token of the oracle, in target steps.
long double oracle_time(const core::AcceptanceRate& rate, double c) {
  return rate.rejection() + static_cast<long double>(rate.alpha()) * c;
}

}  // namespace

double oracle_tokens(const core::AcceptanceRate& rate) { return 1 / rate.rejection(); }

double oracle_speedup(const core::AcceptanceRate& rate, double c) {
  require_cost("oracle_speedup", c);
  return static_cast<double>(1 / oracle_time(rate, c));
}

double oracle_improvement(const core::AcceptanceRate& rate, std::int64_t gamma, double c) {
  core::require_in("oracle_improvement", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  require_cost("oracle_improvement", c);
  const core::StepCost cost{.c = c};
  return static_cast<double>(cost.extended(gamma) / (extended::expected_tokens(rate, gamma) * oracle_time(rate, c)));
}

double oracle_improvement(const core::AcceptanceRate& rate, double c) {
  require_cost("oracle_improvement", c);
  const OptimalGamma best = optimal_gamma(rate, c);
  switch (best.kind) {
    case OptimumKind::attained:
      return oracle_improvement(rate, best.gamma, c);
    case OptimumKind::unbounded:
      return 1;
    case OptimumKind::too_large:
      break;
  }
  return static_cast<double>(1 / (oracle_time(rate, c) * optimal_gamma_real(rate, c)->speedup));
}

}  // namespace specdec::theory
