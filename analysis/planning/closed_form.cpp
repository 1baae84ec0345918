#include "analysis/planning/closed_form.hpp"

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

/// A finite generation takes time O(tokens gamma); above this product it is left out.
constexpr double finite_generation_work = 2e7;
/// Rejections below this one are the rounding of the numbers that were measured.
constexpr double least_measured_rejection = 1e-12;

bool has_papers_costs(const core::StepCost& cost) {
  const auto knots = cost.verification.points();
  return cost.overhead == 0 && cost.verification.last_slope() == 0 &&
         std::all_of(knots.begin(), knots.end(), [](const auto& knot) { return knot.factor == 1; });
}

ClosedFormRow row_of(const ClosedFormQuestion& q, std::int64_t gamma) {
  ClosedFormRow row;
  row.gamma = gamma;
  row.operations_factor = theory::operations_factor(q.acceptance, gamma, q.c_hat);
  row.memory_access_factor = theory::memory_access_factor(q.acceptance, gamma);
  if (!q.tokens) return row;
  const double work = static_cast<double>(*q.tokens) * static_cast<double>(std::min(gamma, *q.tokens) + 1);
  if (work > finite_generation_work) return row;
  const auto generation = theory::finite_generation(q.acceptance, gamma, *q.tokens, q.cost);
  row.finite_speedup = generation.speedup;
  row.finite_steps = generation.expected_steps;
  return row;
}

/// The rate of an oracle's step, which ends at the first rejection: 1 / (1 - rate) tokens.
core::AcceptanceRate oracle_rate(const core::AcceptanceProfile& acceptance) {
  if (acceptance.measured_positions() == 0) return acceptance.tail();
  return core::AcceptanceRate::from_rejection(1 / theory::expected_tokens_limit(acceptance));
}

std::optional<FinitePlan> finite_plan(const ClosedFormQuestion& q, const std::vector<ClosedFormRow>& rows) {
  const ClosedFormRow* best = nullptr;
  bool complete = true;
  for (const ClosedFormRow& row : rows) {
    complete = complete && row.finite_speedup;
    if (row.finite_speedup && (best == nullptr || *row.finite_speedup > *best->finite_speedup)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return FinitePlan{*q.tokens, best->gamma, *best->finite_speedup, *best->finite_steps, complete};
}

}  // namespace

std::int64_t largest_known_gamma(const core::AcceptanceProfile& acceptance, std::optional<std::int64_t> measured_at,
                                 bool monotone) {
  const std::int64_t drafts = measured_at.value_or(acceptance.measured_positions());
  const bool goes_on = monotone && acceptance.tail().rejection() >= least_measured_rejection;
  return drafts > 0 && !goes_on ? drafts : no_max_gamma;
}

ClosedForm closed_form(const ClosedFormQuestion& q) {
  core::require_in("closed_form", "last_gamma", q.last_gamma, 0, no_max_gamma);
  if (q.tokens) core::require_in("closed_form", "tokens", *q.tokens, 1, no_max_gamma);
  const std::int64_t known = largest_known_gamma(q.acceptance, q.measured_at, q.monotone);
  ClosedForm form;
  form.best = best_gamma(q.acceptance, {q.cost, known});
  form.break_even = theory::break_even_alpha(q.cost);
  if (has_papers_costs(q.cost) && known == no_max_gamma) {
    form.oracle_speedup = theory::oracle_speedup(oracle_rate(q.acceptance), q.cost.c);
    if (q.acceptance.measured_positions() == 0) {
      const auto real = theory::optimal_gamma_real(q.acceptance.tail(), q.cost.c);
      if (real) form.gamma_real = real->gamma;
    }
  }
  for (std::int64_t gamma = 0; gamma <= q.last_gamma; ++gamma) form.rows.push_back(row_of(q, gamma));
  if (q.tokens) form.finite = finite_plan(q, form.rows);
  return form;
}

core::AcceptanceRate pooled_rate(const core::AcceptanceProfile& acceptance) {
  const std::int64_t positions = acceptance.measured_positions();
  if (positions == 0) return acceptance.tail();
  const double accepted = theory::expected_tokens(acceptance, positions) - 1;
  return core::AcceptanceRate(std::min(1.0, accepted / theory::expected_tokens(acceptance, positions - 1)));
}

}  // namespace specdec::planning
