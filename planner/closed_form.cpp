#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

bool states_a_rate(const Acceptance& acceptance) { return acceptance.stated && !acceptance.stated->typed; }

/// One acceptance rate at a constant cost, of a model that drafts gamma tokens in as many passes.
bool has_closed_form(const std::vector<Draft>& drafts) {
  const Draft& draft = drafts.front();
  return drafts.size() == 1 && states_a_rate(draft.acceptance) && draft.cost.constants &&
         draft.cost.kind == cost::DraftKind::model;
}

planning::ClosedFormQuestion question_of(const Draft& draft, const PlanQuestion& q) {
  const StepTimes& times = *draft.cost.constants;
  planning::ClosedFormQuestion question{draft.acceptance.stated->rate};
  question.cost = times.with_c(times.c.value_or(0));
  question.c_hat = q.c_hat.value_or(question.cost.c);
  question.tokens = q.tokens;
  return question;
}

/// Explains nulls, and a best gamma that no point compares.
void warn_of(const Plan& p, std::vector<Note>& warnings) {
  const planning::ClosedForm& form = *p.closed_form;
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (form.best.kind == theory::OptimumKind::unbounded)
    warnings.push_back({"no_finite_optimum", "the speedup grows with every larger gamma, so no gamma is optimal"});
  if (form.best.kind == theory::OptimumKind::too_large)
    warnings.push_back({"no_finite_optimum", "the optimal gamma exceeds 2^53, which is unbounded in practice"});
  if (!form.break_even) explain_null("no_break_even", "no acceptance rate below 1 makes any gamma pay");
  if (p.question.tokens && (!form.finite || !form.finite->complete))
    warnings.push_back({"finite_not_computed",
                        "long generations with large gammas are left out, since they take too long to compute"});
  if (!form.gamma_real)
    explain_null("no_gamma_real",
                 "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead");
  if (!form.oracle_speedup)
    explain_null("no_oracle",
                 "the oracle's speedup is known for verify factor 1, no overhead and acceptance that goes on");
  if (form.oracle_speedup && std::isinf(*form.oracle_speedup))
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
}

}  // namespace

std::int64_t gamma_by_closed_form(const Draft& draft) {
  if (!states_a_rate(draft.acceptance) || !draft.cost.constants) return 0;
  const StatedAcceptance& stated = *draft.acceptance.stated;
  const core::StepCost cost = draft.cost.constants->with_c(draft.cost.constants->c.value_or(0));
  std::int64_t largest = 0;
  const auto take = [&](const core::AcceptanceRate& rate) {
    const theory::OptimalGamma best = theory::optimal_gamma(rate, cost);
    // One more than the best, so that the point sees the speedup fall.
    if (best.attained()) largest = std::max(largest, best.gamma + 1);
  };
  take(stated.rate);
  if (stated.interval) take(stated.interval->high);
  return std::min(planning::largest_scanned_gamma, largest);
}

void add_closed_form(Plan& p) {
  if (!has_closed_form(p.drafts) || p.points().size() != 1) {
    if (!p.question.tokens && !p.question.c_hat) return;
    throw QuestionError(
        fmt::format("--{} is given, but goes with one acceptance rate and --c alone, without batches, files and drafts",
                    p.question.tokens ? "tokens" : "c-hat"));
  }
  planning::ClosedFormQuestion question = question_of(p.drafts.front(), p.question);
  question.last_gamma = p.points().front().rows.back().gamma;
  p.closed_form = planning::closed_form(question);
  warn_of(p, p.warnings);
}

}  // namespace specdec::planner
