#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/plan_answer.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

planning::PlanQuestion question_of(const PlanOptions& o, const Acceptance& acceptance) {
  const std::optional<core::StepCost> cost = o.cost.cost();
  if (!cost)
    throw UsageError(fmt::format("--c is missing: the time of one draft step / one target step, a number in {}",
                                 Range{}.to_string()));
  if (o.gamma && o.max_gamma && *o.gamma > *o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  planning::PlanQuestion question{acceptance.profile};
  question.measured_at = acceptance.measured_at;
  question.monotone = acceptance.monotone;
  const std::int64_t known = planning::largest_known_gamma(question);
  if (o.gamma && *o.gamma > known) {
    refuse("--gamma", fmt::format("{}", *o.gamma),
           fmt::format("at most {}: the measured acceptance gives no rate to go on with", known));
  }
  question.space.cost = *cost;
  if (o.max_gamma) question.space.max_gamma = *o.max_gamma;
  question.c_hat = o.c_hat.value_or(cost->c);
  question.tolerance = o.tolerance;
  question.deployed = o.gamma;
  question.max_regret = o.max_regret;
  question.tokens = o.tokens;
  question.interval = acceptance.interval;
  return question;
}

}  // namespace

Answer closed_form(const PlanOptions& options) {
  const Acceptance acceptance = stated_acceptance(options);
  const planning::PlanQuestion question = question_of(options, acceptance);
  return {options, acceptance, question, planning::plan(question)};
}

std::vector<Assumption> assumptions_of(const Answer& a) {
  const PlanOptions& o = a.options;
  std::vector<Assumption> assumptions = {{"acceptances", "independent", "default"}};
  if (a.acceptance.interval) {
    const core::AcceptanceRate middle = planning::pooled_rate(a.question.acceptance);
    assumptions.push_back({"middle of the interval", o.alpha ? middle.alpha() : middle.rejection(), "default"});
  }
  for (const Assumption& assumption : o.cost.assumptions()) assumptions.push_back(assumption);
  assumptions.push_back({"c_hat", a.question.c_hat, o.c_hat ? "user" : "default"});
  assumptions.push_back({"generations", "long", "default"});
  return assumptions;
}

std::vector<Warning> warnings_of(const Answer& a) {
  const planning::Plan& plan = a.plan;
  std::vector<Warning> warnings;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!a.acceptance.monotone) {
    warn("non_monotone_survival",
         "the chance that a draft is reached and accepted must not grow with its position, but does so in the input; "
         "the nearest legal values are used" +
             std::string(a.options.acceptance_per_position ? "; did you mean --conditional?" : ""));
  }
  const std::int64_t known = planning::largest_known_gamma(a.question);
  if (known < planning::no_max_gamma) {
    warn("not_extrapolated", fmt::format("the measured acceptance gives no rate to go on with, so gammas above {} are "
                                         "neither recommended nor shown",
                                         known));
  }
  if (planning::beyond_measured(a.question, plan.rows.back().gamma)) {
    warn("extrapolated",
         fmt::format("gammas above {} hold the {} acceptance rate, {}", a.measured(),
                     a.is_one_rate() ? "fitted" : "last conditional", brief(a.question.acceptance.tail().alpha())));
  }
  if (a.question.space.cost.extrapolates(plan.rows.back().gamma)) {
    warn("verify_factor_extrapolated", fmt::format("scoring more than {} tokens goes on along the last straight line",
                                                   a.question.space.cost.verification.points().back().tokens));
  }
  if (!plan.worth_it) warn("not_worth_it", "no gamma is faster than plain decoding");
  if (plan.interval && plan.worth_it && plan.interval->best_at_low == 0) {
    warn("break_even_inside_interval", "at the low end of the interval no gamma is faster than plain decoding");
  }
  if (!plan.break_even) warn("no_break_even", "no acceptance rate below 1 makes any gamma pay");
  if (plan.best.kind == theory::OptimumKind::unbounded) {
    warn("no_finite_optimum", "the speedup grows with every larger gamma, so no gamma is optimal");
  }
  if (plan.best.kind == theory::OptimumKind::too_large) {
    warn("no_finite_optimum", "the optimal gamma exceeds 2^53, which is unbounded in practice; limit stays null");
  }
  if (plan.best.attained() && plan.best.gamma != plan.unrestricted.gamma) {
    warn("max_gamma_binds",
         fmt::format("{}without --max-gamma {} would reach {}x", plan.interval ? "at the middle of the interval, " : "",
                     plan.unrestricted.attained() ? fmt::format("gamma {}", plan.unrestricted.gamma)
                                                  : std::string("ever larger gammas"),
                     brief(plan.unrestricted.speedup)));
  }
  std::int64_t near_best = 0;
  for (const theory::GammaRange& range : plan.near_best) {
    near_best += std::min<std::int64_t>(range.last - range.first, listed_gammas) + 1;
  }
  if (near_best > listed_gammas) {
    explain_null("near_optimal_list_cut", "near_optimal_gammas stops early; near_optimal_ranges is complete");
  }
  if (plan.interval && !plan.interval->all_listed) {
    warn("optimal_gammas_cut", fmt::format("only the first {} gammas that are optimal in the interval are listed",
                                           plan.interval->best.size()));
  }
  if (a.options.tokens && (!plan.finite || !plan.finite->complete)) {
    warn("finite_not_computed", "long generations with large gammas are left out, since they take too long to compute");
  }
  if (a.regret_too_large()) {
    warn("max_regret_exceeded",
         fmt::format("the {}regret of gamma {} is {}, above --max-regret {}", plan.interval ? "worst " : "",
                     plan.deployed->gamma, brief(plan.deployed->largest_regret()), *a.options.max_regret));
  }
  if (!plan.gamma_real) {
    explain_null("no_gamma_real", "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead");
  }
  if (!plan.oracle_speedup) {
    explain_null("no_oracle",
                 "the oracle's speedup is known for verify factor 1, no overhead and acceptance that goes on");
  }
  if (plan.oracle_speedup && std::isinf(*plan.oracle_speedup)) {
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
  }
  return warnings;
}

}  // namespace specdec::cli
