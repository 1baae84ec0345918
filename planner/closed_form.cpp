#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "analysis/theory/tokens.hpp"
#include "planner/number_text.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

planning::PlanQuestion question_of(const Draft& draft, const PlanQuestion& q) {
  if (q.gamma && q.max_gamma && *q.gamma > *q.max_gamma) {
    refuse("--gamma", fmt::format("{}", *q.gamma), fmt::format("at most --max-gamma, {}", *q.max_gamma));
  }
  const StatedAcceptance& stated = *draft.acceptance.stated;
  const StepTimes& times = *draft.cost.constants;
  planning::PlanQuestion question{stated.profile};
  question.measured_at = stated.measured_at;
  question.measured_from = stated.measured_from;
  question.monotone = stated.monotone;
  const std::int64_t known = planning::largest_known_gamma(question);
  if (q.gamma && *q.gamma > known) {
    refuse("--gamma", fmt::format("{}", *q.gamma),
           fmt::format("at most {}: the measured acceptance gives no rate to go on with", known));
  }
  question.space.cost = times.with_c(times.c.value_or(0));
  if (q.max_gamma) question.space.max_gamma = *q.max_gamma;
  question.c_hat = q.c_hat.value_or(question.space.cost.c);
  question.tolerance = q.tolerance;
  question.deployed = q.gamma;
  question.max_regret = q.max_regret;
  question.tokens = q.tokens;
  question.interval = stated.interval;
  if (stated.typed) {
    question.readings = stated.typed->readings;
    question.ci95 = stated.typed->ci95;
  }
  return question;
}

/// The question for the one point: the gamma in use is judged by the closed forms.
PlanQuestion question_of_point(const PlanQuestion& q) {
  PlanQuestion question = q;
  question.gamma.reset();
  question.max_regret.reset();
  question.tokens.reset();
  question.c_hat.reset();
  return question;
}

std::vector<Assumption> assumptions_of(const Draft& draft, const ClosedForm& form, const Plan& p) {
  const StatedAcceptance& stated = *draft.acceptance.stated;
  std::vector<Assumption> assumptions = {{"acceptances", "independent", "default"}};
  append_new(assumptions, draft.acceptance.assumptions);
  if (stated.published != nullptr) {
    assumptions.push_back(assumption_of(*stated.published));
  } else if (stated.interval) {
    const core::AcceptanceRate middle = planning::pooled_rate(form.question.acceptance);
    assumptions.push_back(
        {"middle of the interval", stated.by_rejection ? middle.rejection() : middle.alpha(), "default"});
  }
  append_new(assumptions, draft.cost.constants->assumptions());
  assumptions.push_back({"c_hat", form.question.c_hat, p.question.c_hat ? "user" : "default"});
  assumptions.push_back({"generations", "long", "default"});
  assumptions.push_back({"min_gain", p.min_gain, p.question.min_gain ? "user" : "default"});
  return assumptions;
}

/// Warns of figures beyond the given acceptance or verify factors.
void warn_of_extrapolation(const StatedAcceptance& stated, const ClosedForm& form, std::vector<Note>& warnings) {
  const std::int64_t known = planning::largest_known_gamma(form.question);
  if (known < planning::no_max_gamma) {
    warnings.push_back(
        {"not_extrapolated", fmt::format("the measured acceptance gives no rate to go on with, so gammas above {} are "
                                         "neither recommended nor shown",
                                         known)});
  }
  const std::int64_t last = form.plan.rows.back().gamma;
  const estimate::DepthRatios& published = estimate::published_depth_ratios;
  if (form.question.measured_from > 1) {
    warnings.push_back({"extrapolated_below",
                        fmt::format("nothing was measured below gamma {}: rates are taken there that lead to the "
                                    "length typed; the range beside it is that of ratios of {} to {} between them",
                                    form.question.measured_from, published.steepest, published.rising)});
  }
  if (planning::beyond_measured(form.question, last)) {
    const double ratio = stated.typed->ratio_beyond.value_or(1);
    warnings.push_back(
        {"extrapolated",
         fmt::format("nothing was measured above gamma {}: each further draft's rate is taken as {} times the one "
                     "before, {}; the range beside it is that of {} to {}",
                     form.measured(), brief(ratio, 3),
                     stated.typed->ratio_fitted ? "as the figures given fall" : "the median of published drafts",
                     brief(std::min(ratio, published.steepest), 3), published.rising)});
  }
  if (form.question.space.cost.extrapolates(last)) {
    warnings.push_back(
        {"verify_factor_extrapolated", fmt::format("scoring more than {} tokens goes on along the last straight line",
                                                   form.question.space.cost.verification.points().back().tokens)});
  }
}

/// Warns if no gamma pays, none is optimal or the best one is excluded.
void warn_of_optimum(const Plan& p, std::vector<Note>& warnings) {
  const planning::Plan& plan = p.closed_form->plan;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  if (!plan.worth_it) {
    const bool decided = !p.has_points() || p.points().front().verdict == planning::Verdict::do_not_speculate;
    warn("not_worth_it",
         fmt::format("{}no gamma{} is faster than plain decoding", decided ? "" : "by the estimate alone ",
                     plan.prefers_plain() ? " that was measured" : ""));
  }
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
}

/// Warns of truncated lists and of the gamma in use, and explains nulls.
void warn_of_rest(const Plan& p, std::vector<Note>& warnings) {
  const planning::Plan& plan = p.closed_form->plan;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
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
  if (p.question.tokens && (!plan.finite || !plan.finite->complete)) {
    warn("finite_not_computed", "long generations with large gammas are left out, since they take too long to compute");
  }
  if (p.closed_form->regret_too_large()) {
    warn("max_regret_exceeded",
         fmt::format("gamma {} is {}{} behind what is recommended, above --max-regret {}", plan.deployed->gamma,
                     plan.interval || !p.closed_form->question.readings.empty() ? "up to " : "",
                     brief(plan.deployed->behind_recommended), *p.question.max_regret));
  }
  if (!plan.gamma_real) {
    explain_null("no_gamma_real",
                 "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead, where --max-gamma "
                 "does not bind");
  }
  if (!plan.oracle_speedup) {
    explain_null("no_oracle",
                 "the oracle's speedup is known for verify factor 1, no overhead and acceptance that goes on");
  }
  if (plan.oracle_speedup && std::isinf(*plan.oracle_speedup)) {
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
  }
  if (!p.has_points()) {
    explain_null("points_not_computed", fmt::format("points is empty: {}", p.closed_form->no_point));
  }
}

}  // namespace

bool has_closed_form(const std::vector<Draft>& drafts, const PlanQuestion& q) {
  if (drafts.size() > 1) return false;
  const Draft& draft = drafts.front();
  const bool one_rate = draft.acceptance.stated && draft.cost.constants && draft.cost.draft.name.empty();
  const bool of_points = !q.batch.empty() || !q.context.empty() || q.max_num_seqs || !q.schedule.empty() || q.emit;
  return one_rate && !of_points && !draft.cost.draft.kind && !q.extrapolate;
}

std::int64_t gamma_by_closed_form(const Draft& draft) {
  if (!draft.acceptance.stated || !draft.cost.constants) return 0;
  const planning::Plan plan = planning::plan(question_of(draft, {}));
  const std::int64_t best = plan.best.attained() ? plan.best.gamma : 0;
  const std::int64_t at_high = plan.interval ? plan.interval->best_at_high : 0;
  const std::int64_t recommended = plan.recommended ? plan.recommended->gamma : 0;
  return std::min(planning::largest_scanned_gamma, std::max({best, at_high, recommended}));
}

Plan plan_closed_form(Draft draft, const PlanQuestion& q) {
  const planning::PlanQuestion question = question_of(draft, q);
  ClosedForm form{question, planning::plan(question), {}};
  Plan p;
  try {
    p = planned_points({draft}, question_of_point(q));
    conclude(nullptr, p);
  } catch (const std::domain_error& error) {
    form.no_point = error.what();
    p = Plan{};
    p.drafts = {draft};
    p.min_gain = q.min_gain.value_or(default_min_gain);
  }
  if (form.plan.deployed && p.has_points() && p.points().front().verdict == planning::Verdict::do_not_speculate) {
    form.plan.deployed = planning::judge_deployed(question, 0);
  } else if (form.plan.deployed && form.plan.recommended && p.has_points() && p.points().front().unsure_row) {
    form.plan.deployed = planning::judge_deployed(question, p.points().front().optimal()->gamma);
  }
  p.question = q;
  p.closed_form = std::move(form);
  p.assumptions = assumptions_of(draft, *p.closed_form, p);
  p.warnings = draft.acceptance.warnings;
  append(p.warnings, draft.cost.warnings);
  warn_of_extrapolation(*draft.acceptance.stated, *p.closed_form, p.warnings);
  warn_of_optimum(p, p.warnings);
  warn_of_rest(p, p.warnings);
  return p;
}

std::optional<estimate::Interval> speedup_interval(const Acceptance& acceptance, const planning::PlanRow& row) {
  if (!acceptance.stated) return std::nullopt;
  if (const auto& rates = acceptance.stated->interval) {
    const double per_token = row.speedup / row.expected_tokens;
    return estimate::Interval{theory::expected_tokens(rates->low, row.gamma) * per_token,
                              theory::expected_tokens(rates->high, row.gamma) * per_token};
  }
  if (!acceptance.stated->typed) return std::nullopt;
  const estimate::TokensPerStep tokens = acceptance.curve->tokens_per_step(row.gamma);
  const double most = static_cast<double>(row.gamma) + 1, per_token = row.speedup / tokens.value;
  return estimate::Interval{std::max(1.0, tokens.ci95.lo * tokens.readings.lo / tokens.value) * per_token,
                            std::min(most, tokens.ci95.hi * tokens.readings.hi / tokens.value) * per_token};
}

}  // namespace specdec::planner
