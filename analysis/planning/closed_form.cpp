#include "analysis/planning/closed_form.hpp"

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

/// A finite generation takes time O(tokens gamma); above this product it is left out.
constexpr double finite_generation_work = 2e7;

bool has_papers_costs(const core::StepCost& cost) {
  const auto knots = cost.verification.points();
  return cost.overhead == 0 && cost.verification.last_slope() == 0 &&
         std::all_of(knots.begin(), knots.end(), [](const auto& knot) { return knot.factor == 1; });
}

ClosedFormRow row_of(const ClosedFormQuestion& q, std::int64_t gamma) {
  ClosedFormRow row;
  row.gamma = gamma;
  row.operations_factor = theory::operations_factor(q.rate, gamma, q.c_hat);
  row.memory_access_factor = theory::memory_access_factor(q.rate, gamma);
  if (!q.tokens) return row;
  const double work = static_cast<double>(*q.tokens) * static_cast<double>(std::min(gamma, *q.tokens) + 1);
  if (work > finite_generation_work) return row;
  const auto generation = theory::finite_generation(q.rate, gamma, *q.tokens, q.cost);
  row.finite_speedup = generation.speedup;
  row.finite_steps = generation.expected_steps;
  return row;
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

ClosedForm closed_form(const ClosedFormQuestion& q) {
  core::require_in("closed_form", "last_gamma", q.last_gamma, 0, no_max_gamma);
  if (q.tokens) core::require_in("closed_form", "tokens", *q.tokens, 1, no_max_gamma);
  ClosedForm form;
  form.best = theory::optimal_gamma(q.rate, q.cost);
  form.break_even = theory::break_even_alpha(q.cost);
  if (has_papers_costs(q.cost)) {
    form.oracle_speedup = theory::oracle_speedup(q.rate, q.cost.c);
    const auto real = theory::optimal_gamma_real(q.rate, q.cost.c);
    if (real) form.gamma_real = real->gamma;
  }
  for (std::int64_t gamma = 0; gamma <= q.last_gamma; ++gamma) form.rows.push_back(row_of(q, gamma));
  if (q.tokens) form.finite = finite_plan(q, form.rows);
  return form;
}

}  // namespace specdec::planning
