#include "planner/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/model_names.hpp"
#include "planner/number_text.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"
#include "traces/acceptance_rules.hpp"

namespace specdec::planner {
namespace {

using planning::PointPlan;
using planning::ScheduleStretch;

std::vector<ScheduleStretch> deployed_of(const PlanQuestion& q, std::int64_t max_gamma) {
  if (!q.schedule.empty()) return q.schedule;
  if (!q.gamma) return {};
  if (*q.gamma > max_gamma && q.max_gamma) {
    refuse("--gamma", fmt::format("{}", *q.gamma), fmt::format("at most --max-gamma, {}", *q.max_gamma));
  }
  if (*q.gamma > planning::largest_scanned_gamma) {
    refuse("--gamma", fmt::format("{}", *q.gamma), fmt::format("at most {}", planning::largest_scanned_gamma));
  }
  return {{1, planning::largest_scheduled_batch, *q.gamma}};
}

/// The largest gamma that a stated acceptance covers.
std::int64_t known_gamma(const Acceptance& acceptance) {
  if (!acceptance.stated) return planning::largest_scanned_gamma;
  planning::PlanQuestion question{acceptance.stated->profile};
  question.measured_at = acceptance.stated->measured_at;
  question.monotone = acceptance.stated->monotone;
  return planning::largest_known_gamma(question);
}

/// The number of tokens in the cache at which the measurements were made.
double usual_context(const std::vector<Draft>& drafts) {
  double context = 0;
  for (const Draft& draft : drafts) context = std::max(context, draft.cost.rounds->usual_context());
  return context;
}

void warn_of_other_models(Plan& p) {
  for (const Draft& draft : p.drafts) {
    const cost::ModelSpec* spec = draft.cost.roofline ? &draft.cost.roofline->options().target.model : nullptr;
    const auto asked = p.target_model.empty() ? std::nullopt : std::optional(p.target_model);
    if (auto warning = other_model(draft.acceptance.model, names_of(asked, spec))) p.warnings.push_back(*warning);
  }
}

/// The paper's costs are multiples of a step and do not depend on the batch.
void warn_of_constant_cost(const planning::DeploymentQuestion& question, Plan& p) {
  const auto is_constant = [](const Draft& draft) { return draft.cost.constants.has_value(); };
  if (std::none_of(p.drafts.begin(), p.drafts.end(), is_constant)) return;
  if (question.batches.back() <= 1 && question.schedule_up_to.value_or(1) <= 1) return;
  p.warnings.push_back({"constant_cost",
                        "c and verify_factor are taken as the same at every batch, but the more sequences decode "
                        "together, the longer it takes to verify several tokens of each: --hardware, --cost or --bench "
                        "price batches"});
}

std::optional<std::string> engine_of(const Draft& draft) {
  if (draft.cost.from_log || !draft.acceptance.engine) return draft.cost.engine;
  return draft.acceptance.engine;
}

void require_rising(std::string_view option, const std::vector<double>& values, double lo, bool lo_open, double hi) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool above = lo_open ? lo < values[i] : lo <= values[i];
    if (!(above && values[i] <= hi)) {
      refuse(option, fmt::format("{}", values[i]), fmt::format("in {}{}, {}]", lo_open ? '(' : '[', lo, hi));
    }
    if (i > 0 && values[i] <= values[i - 1]) refuse(option, fmt::format("{}", fmt::join(values, ",")), "a rising list");
  }
}

/// The question for the library, from the drafts' names, curves and costs and the plan's question.
planning::DeploymentQuestion deployment_question(const Plan& p) {
  const PlanQuestion& q = p.question;
  planning::DeploymentQuestion question;
  std::set<std::string> names;
  for (const Draft& draft : p.drafts) {
    if (!names.insert(draft.name).second) throw QuestionError(fmt::format("--draft {} is given twice", draft.name));
    question.drafts.push_back({draft.name, draft.acceptance.curve, draft.cost.rounds, draft.acceptance.clusters});
    question.drafts.back().states_range = draft.acceptance.states_range();
    question.drafts.back().by_context = draft.acceptance.by_context;
    question.drafts.back().can_be_served = p.misfits[question.drafts.size() - 1].empty();
    if (q.context.empty() && !draft.acceptance.by_context.empty())
      throw QuestionError("--by is given, but needs --context beside it: each context has the acceptance of its range");
  }
  question.batches = q.batch.empty() ? p.drafts.front().cost.usual_batches : q.batch;
  question.contexts = q.context.empty() ? std::vector<double>{usual_context(p.drafts)} : q.context;
  take_limits(p, question);
  question.max_gamma_is_default = !q.max_gamma;
  if (!q.points_only) question.schedule_up_to = scheduled_up_to(q, question.batches);
  return question;
}

/// The rule as stated by the user or by files, or the default.
std::optional<Assumption> assumed_rule(const Acceptance& acceptance) {
  if (!acceptance.rule) return std::nullopt;
  return Assumption{"acceptance", traces::name_of(*acceptance.rule), acceptance.rule_source};
}

/// Adds the acceptance of a draft, with its name if there are several drafts.
void assume_acceptance(const Draft& draft, bool one_of_several, std::vector<Assumption>& assumptions) {
  for (Assumption assumption : draft.acceptance.assumptions) {
    if (one_of_several) assumption.name = fmt::format("{}: {}", draft.name, assumption.name);
    append_new(assumptions, {assumption});
  }
}

/// Half-width of an interval of a positive number, on a logarithmic scale.
double log_half_width(const estimate::Interval& interval) { return 0.5 * std::log(interval.hi / interval.lo); }

/// Half the central 95% of the logarithm of the ratio of two rounds, over their replicates; 0 if neither has any.
/// Costs of one device share losses, so replicates with the same number belong together.
double cost_ratio_error(const cost::RoundCost& a, const cost::RoundCost& b, const cost::RoundPoint& at_a,
                        const cost::RoundPoint& at_b) {
  const std::size_t replicates = std::max(a.replicates(), b.replicates());
  if (replicates == 0) return 0;
  const auto totals = [&](const cost::RoundCost& cost, const cost::RoundPoint& at) {
    std::vector<double> seconds(replicates, cost.round(at).total());
    if (cost.replicates() == replicates) cost.totals_of_replicates(at, seconds);
    return seconds;
  };
  const std::vector<double> of_a = totals(a, at_a), of_b = totals(b, at_b);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < replicates; ++i) ratios.push_back(of_a[i] / of_b[i]);
  return log_half_width({core::quantile(ratios, 0.025), core::quantile(ratios, 0.975)});
}

}  // namespace

std::int64_t PlanQuestion::largest_compared_gamma(std::int64_t usual) const {
  return std::min(max_gamma.value_or(std::max(usual, gamma.value_or(0))), planning::largest_scanned_gamma);
}

std::vector<Recommendation> Plan::recommendations() const {
  std::vector<Recommendation> all;
  if (has_points()) {
    for (const PointPlan& point : points()) {
      Recommendation& one = all.emplace_back(Recommendation{point.batch, point.context, point.verdict, {}, {}});
      if (point.verdict == planning::Verdict::do_not_speculate) {
        one.gamma = 0;
        one.speedup = estimate::Estimate{1, {}, "plain decoding, 1 by definition"};
        continue;
      }
      if (point.optimal_row) one.gamma = point.optimal()->gamma;
      one.speedup = point.speedup_estimate;
    }
  }
  if (!closed_form || sure_row() != nullptr) return all;
  if (has_points() && points().front().verdict == planning::Verdict::do_not_speculate) return all;
  if (all.empty()) all.emplace_back();
  // The closed forms consider all gammas and the whole interval, their point only some.
  const auto& recommended = closed_form->plan.recommended;
  all.front().gamma = recommended ? std::optional(recommended->gamma) : std::nullopt;
  all.front().speedup.reset();
  if (recommended) {
    all.front().speedup = estimate::Estimate{};
    all.front().speedup->value = recommended->speedup;
    all.front().speedup->ci95 = speedup_interval(drafts.front().acceptance, *recommended);
  }
  return all;
}

const planning::DeploymentRow* Plan::sure_row() const {
  const bool is_other = closed_form && closed_form->plan.recommended && has_points() && points().front().unsure_row;
  return is_other ? points().front().optimal() : nullptr;
}

bool Plan::lacks_sampling(std::size_t draft) const {
  return draft < drafts.size() && drafts[draft].acceptance.stated && drafts[draft].acceptance.stated->is_range();
}

bool Plan::exceeds_max_regret() const {
  return deployment.exceeds_max_regret || (closed_form && closed_form->regret_too_large());
}

void require_schedule(const std::vector<ScheduleStretch>& schedule) {
  std::int64_t next = 1;
  for (const ScheduleStretch& s : schedule) {
    const bool legal = s.batch_low == next && s.batch_low <= s.batch_high &&
                       s.batch_high <= planning::largest_scheduled_batch && 0 <= s.gamma &&
                       s.gamma <= planning::largest_scanned_gamma;
    if (!legal) {
      refuse("--schedule", fmt::format("{}-{}:{}", s.batch_low, s.batch_high, s.gamma),
             fmt::format("stretches from batch 1 on without gaps up to {}, of gammas up to {}",
                         planning::largest_scheduled_batch, planning::largest_scanned_gamma));
    }
    next = s.batch_high + 1;
  }
}

void require_ranges(const PlanQuestion& q) {
  require_rising("--batch", q.batch, 0, true, static_cast<double>(planning::largest_scheduled_batch));
  require_rising("--context", q.context, 0, false, largest_context);
  require_schedule(q.schedule);
  const auto require = [](std::string_view option, auto value, bool legal, std::string_view expected) {
    if (!legal) refuse(option, fmt::format("{}", value), expected);
  };
  require("--tolerance", q.tolerance, 0 < q.tolerance && q.tolerance <= 0.5, "in (0, 0.5]");
  const std::int64_t max_gamma = q.max_gamma.value_or(1);
  require("--max-gamma", max_gamma, 1 <= max_gamma && max_gamma <= largest_max_gamma,
          fmt::format("in [1, {}]", largest_max_gamma));
  require_in("--max-num-seqs", q.max_num_seqs, {.lo = 1, .hi = static_cast<double>(planning::largest_scheduled_batch)});
  require_in("--tokens", q.tokens, {.lo = 1, .hi = 1e6});
  require_in("--c-hat", q.c_hat, {});
  const std::int64_t gamma = q.gamma.value_or(0);
  require("--gamma", gamma, gamma >= 0, "0 or more");
  const double min_gain = q.min_gain.value_or(0), max_regret = q.max_regret.value_or(0);
  require("--min-gain", min_gain, 0 <= min_gain && std::isfinite(min_gain), "0 or more");
  require("--max-regret", max_regret, 0 <= max_regret && max_regret <= 1, "in [0, 1]");
}

Plan asked_plan(const PlanQuestion& q, std::int64_t usual) {
  require_ranges(q);
  Plan p;
  p.question = q;
  p.min_gain = q.min_gain.value_or(default_min_gain);
  p.max_gamma = q.largest_compared_gamma(usual);
  p.deployed = deployed_of(q, p.max_gamma);
  if (!q.batch.empty() && q.max_num_seqs && q.batch.back() > static_cast<double>(*q.max_num_seqs)) {
    refuse("--batch", brief(q.batch.back()),
           fmt::format("at most --max-num-seqs, {}: the server decodes no more together", *q.max_num_seqs));
  }
  return p;
}

std::int64_t scheduled_up_to(const PlanQuestion& q, const std::vector<double>& batches) {
  if (q.max_num_seqs) return *q.max_num_seqs;
  const double largest = std::min(std::ceil(batches.back()), static_cast<double>(planning::largest_scheduled_batch));
  return static_cast<std::int64_t>(largest);
}

void require_scheduled(const Plan& p, const std::vector<double>& batches) {
  if (p.deployed.empty() || batches.empty()) return;
  if (static_cast<double>(p.deployed.back().batch_high) >= batches.back()) return;
  std::vector<std::string> stretches;
  for (const ScheduleStretch& s : p.deployed) {
    stretches.push_back(fmt::format("{}-{}:{}", s.batch_low, s.batch_high, s.gamma));
  }
  refuse("--schedule", fmt::format("{}", fmt::join(stretches, ",")),
         fmt::format("a schedule up to batch {}", brief(batches.back())));
}

void take_cost(const Cost& cost, Plan& p) {
  append_new(p.presets, cost.presets);
  append_new(p.warnings, cost.warnings);
  p.files.insert(p.files.end(), cost.files.begin(), cost.files.end());
  p.specs.hardware.insert(cost.specs.hardware.begin(), cost.specs.hardware.end());
  p.specs.models.insert(cost.specs.models.begin(), cost.specs.models.end());
  p.specs.kernels.insert(cost.specs.kernels.begin(), cost.specs.kernels.end());
}

void take_acceptance(const Acceptance& acceptance, Plan& p) {
  p.max_gamma = std::min(p.max_gamma, known_gamma(acceptance));
  append_new(p.warnings, acceptance.warnings);
  append_new(p.presets, acceptance.presets);
  p.files.insert(p.files.end(), acceptance.files.begin(), acceptance.files.end());
}

void take_design_effect(planning::DeploymentPlan wider, Plan& p) {
  p.deployment.exceeds_max_regret = false;
  for (std::size_t i = 0; i < p.deployment.drafts.size(); ++i) {
    planning::DraftPlan& draft = p.deployment.drafts[i];
    std::vector<planning::Verdict>& independent = p.verdicts_if_independent.emplace_back();
    for (std::size_t j = 0; j < draft.points.size(); ++j) {
      independent.push_back(draft.points[j].verdict);
      planning::take_verdict(wider.drafts[i].points[j], draft.points[j]);
    }
    for (const PointPlan& point : draft.points)
      if (point.deployed && point.deployed->exceeds_max_regret) p.deployment.exceeds_max_regret = true;
    draft.schedule = wider.drafts[i].schedule;
    draft.fixed = wider.drafts[i].fixed;
    draft.crossover_batch = wider.drafts[i].crossover_batch;
    draft.crossover_bounds = wider.drafts[i].crossover_bounds;
  }
  p.deployment.recommended_draft = wider.recommended_draft;
  p.deployment.best_draft = wider.best_draft;
  p.at_design_effect_3 = std::move(wider);
}

Plan planned_points(std::vector<Draft> drafts, const PlanQuestion& q) {
  std::int64_t usual = usual_max_gamma;
  for (const Draft& draft : drafts) usual = std::max(usual, gamma_by_closed_form(draft));
  Plan p = asked_plan(q, usual);
  p.drafts = std::move(drafts);
  const Draft& first = p.drafts.front();
  p.target_model = first.cost.target_model;
  for (const Draft& draft : p.drafts) take_cost(draft.cost, p);
  if (p.cost_from_log() && !q.context.empty()) {
    p.warnings.push_back({"context_not_told", "logs do not tell contexts: what they price is the same at all of them"});
  }
  warn_of_other_models(p);
  p.engine = engine_of(first);
  p.in_seconds = first.cost.rounds->in_seconds();
  for (const Draft& draft : p.drafts) take_acceptance(draft.acceptance, p);
  for (const Draft& draft : p.drafts) p.misfits.push_back(why_not_served(draft, p));
  planning::DeploymentQuestion question = deployment_question(p);
  const double longest = *std::max_element(question.contexts.begin(), question.contexts.end());
  for (const Draft& draft : p.drafts)
    append_new(p.warnings, calibration_doubts(draft.cost, &draft.acceptance, longest));
  require_scheduled(p, question.batches);
  warn_of_constant_cost(question, p);
  p.deployment = planning::plan_deployment(question);

  bool any_iid = false;
  for (std::size_t i = 0; i < p.drafts.size(); ++i) {
    if (!p.drafts[i].acceptance.curve_at_design_effect_3) continue;
    question.drafts[i].acceptance = p.drafts[i].acceptance.curve_at_design_effect_3;
    any_iid = true;
  }
  if (any_iid) take_design_effect(planning::plan_deployment(question), p);
  return p;
}

/// True if the recommended draft is faster than the rival at a point by more than the uncertainty of both.
bool is_told_apart(const Plan& p, std::size_t rival, std::size_t point) {
  const bool other_refused = rival < p.drafts.size() && !p.drafts[rival].acceptance.curve->refused().empty();
  if (!p.refused().empty() || other_refused) return false;
  const PointPlan& others = p.deployment.drafts[rival].points[point];
  const planning::DeploymentRow* const own = p.points()[point].optimal();
  const planning::DeploymentRow* const other = others.optimal();
  if (own == nullptr || other == nullptr || own->gamma == 0) return false;
  // Replicates of runs have one error for all that was drafted.
  const double of_runs = p.bench ? core::normal_half_width_95 * std::numbers::sqrt2 * p.bench->run_error : 0;
  const double gain =
      std::log(own->tokens_per_step * other->time.total() / (other->tokens_per_step * own->time.total()));
  const double cost_error = cost_ratio_error(p.cost(), p.cost(rival), {own->gamma, others.batch, others.context},
                                             {other->gamma, others.batch, others.context});
  const double tokens_error =
      core::half_of_both(log_half_width(own->tokens_interval), log_half_width(other->tokens_interval));
  return gain > core::half_of_both(tokens_error, core::half_of_both(cost_error, of_runs));
}

void compare_drafts(Plan& p) {
  if (!p.deployment.recommended_draft) return;
  std::vector<std::string> names;
  for (std::size_t rival = 0; rival < p.deployment.drafts.size(); ++rival) {
    if (rival == p.shown() || !p.misfits[rival].empty()) continue;
    bool is_told = false;
    for (std::size_t point = 0; point < p.points().size(); ++point) is_told = is_told || is_told_apart(p, rival, point);
    if (is_told) continue;
    p.drafts_not_told_apart.push_back(rival);
    names.push_back(p.deployment.drafts[rival].name);
  }
  if (names.empty()) return;
  p.warnings.push_back({"drafts_not_told_apart",
                        fmt::format("draft {} is faster than {} by the estimate alone: what is uncertain of their "
                                    "acceptance and cost is more than the difference",
                                    p.shown_plan().name, fmt::join(names, ", "))});
}

void warn_of_regret(Plan& p) {
  if (!p.deployment.exceeds_max_regret) return;
  const PointPlan* worst = nullptr;
  std::size_t points = 0;
  for (const PointPlan& point : p.points()) {
    if (!point.deployed || !point.deployed->exceeds_max_regret) continue;
    ++points;
    if (worst == nullptr || point.deployed->behind_recommended > worst->deployed->behind_recommended) {
      worst = &point;
    }
  }
  if (worst == nullptr) return;
  p.warnings.push_back(
      {"max_regret_exceeded",
       fmt::format("at {} of {} points what is in use is behind what is recommended by more than --max-regret {}; most "
                   "at batch {}, where gamma {} is up to {} behind",
                   points, p.points().size(), *p.question.max_regret, brief(worst->batch), worst->deployed->gamma,
                   brief(worst->deployed->behind_recommended))});
}

void assume(const BenchFiles* runs, Plan& p) {
  std::vector<Assumption>& all = p.assumptions;
  all = {{"baseline and speculation compared", "at equal batch", "default"},
         {"min_gain", p.min_gain, p.question.min_gain ? "user" : "default"}};
  for (const Draft& draft : p.drafts) {
    const auto& stated = draft.acceptance.stated;
    if (stated && stated->published != nullptr) all.push_back(assumption_of(*stated->published));
  }
  for (const Draft& draft : p.drafts) append_new(all, draft.cost.assumptions);
  if (p.has_roofline() && p.question.context.empty()) all.push_back({"context", "0, an empty cache", "default"});
  if (runs != nullptr) {
    if (p.bench->cost->kind() == cost::DraftKind::mirrored && !runs->draft.kind) {
      all.push_back({"draft_kind", name_of(cost::DraftKind::mirrored), "default"});
    }
    if (cost::looks_up(p.bench->cost->kind())) all.push_back({"rounds", "every step, with a draft or without", "file"});
    if (runs->hardware) append_new(all, runs->hardware->assumptions);
    if (runs->overhead) all.push_back({"overhead", *runs->overhead, "user"});
    if (runs->overhead_seconds) all.push_back({"overhead_seconds", *runs->overhead_seconds, "user"});
    all.push_back({"relative error of a run, before others contradict it", cost::FitOptions{}.usual_error, "default"});
  }
  for (const Draft& draft : p.drafts) assume_acceptance(draft, p.drafts.size() > 1, all);
  const Acceptance::Rule stated_of_runs = runs != nullptr ? runs->acceptance : std::nullopt;
  if (p.drafts.empty() && stated_of_runs) all.push_back({"acceptance", traces::name_of(*stated_of_runs), "user"});
  if (p.drafts.empty()) return;
  if (const auto rule = assumed_rule(p.drafts[p.shown()].acceptance)) all.push_back(*rule);
}

Plan plan(const Acceptance& acceptance, const Cost& cost, const PlanQuestion& question) {
  return plan({{cost.draft.model.value_or("draft"), acceptance, cost}}, question);
}

Plan plan(std::vector<Draft> drafts, const PlanQuestion& question) {
  if (drafts.empty()) throw QuestionError("--draft is missing: there is nothing to plan");
  require_ranges(question);
  for (Draft& draft : drafts) {
    if (question.emit == planning::Engine::llamacpp || draft.acceptance.is_of_llamacpp())
      draft.cost = with_drafts_of_llamacpp(draft.cost);
    draft.cost.draft.of_sglang = question.emit == planning::Engine::sglang;
    take_lookups(&draft.acceptance, draft.cost);
  }
  if (has_closed_form(drafts, question)) return plan_closed_form(std::move(drafts.front()), question);
  if (question.tokens || question.c_hat) {
    throw QuestionError(
        fmt::format("--{} is given, but goes with one acceptance and --c alone, without batches, files and drafts",
                    question.tokens ? "tokens" : "c-hat"));
  }
  Plan p = planned_points(std::move(drafts), question);
  conclude(nullptr, p);
  compare_drafts(p);
  warn_of_regret(p);
  assume(nullptr, p);
  return p;
}

std::optional<std::string_view> bound_of(const Plan& p, const PointPlan& point, std::int64_t gamma) {
  if (!p.has_roofline()) return std::nullopt;
  const double tokens = static_cast<double>(gamma) + 1;
  return cost::name_of(p.drafts[p.shown()].cost.roofline->target_pass(point.batch, tokens, point.context).bound());
}

bool same_context(double a, double b) { return a <= 1.1 * b && b <= 1.1 * a; }

bool has_several_contexts(const Plan& p) {
  const double first = p.points().front().context;
  return std::any_of(p.points().begin(), p.points().end(),
                     [&](const PointPlan& point) { return !same_context(point.context, first); });
}

}  // namespace specdec::planner
