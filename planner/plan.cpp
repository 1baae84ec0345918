#include "planner/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planner/lookup_drafts.hpp"
#include "planner/model_names.hpp"
#include "planner/number_text.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"

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

std::optional<std::string> engine_of(const Draft& draft) {
  if (draft.cost.from_log || !draft.acceptance.engine) return draft.cost.engine;
  return draft.acceptance.engine;
}

void require_rising(std::string_view option, const std::vector<double>& values, const LegalRange& range) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!range.contains(values[i])) refuse(option, fmt::format("{}", values[i]), "in " + range.to_string());
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
    question.drafts.push_back({draft.name, draft.acceptance.curve, draft.cost.rounds});
    question.drafts.back().by_context = draft.acceptance.by_context;
    question.drafts.back().can_be_served = p.misfits[question.drafts.size() - 1].empty();
    if (q.context.empty() && !draft.acceptance.by_context.empty())
      throw QuestionError("--by is given, but needs --context beside it: each context has the acceptance of its range");
  }
  question.batches = q.batch.empty() ? p.drafts.front().cost.usual_batches : q.batch;
  question.contexts = q.context.empty() ? std::vector<double>{usual_context(p.drafts)} : q.context;
  take_limits(p, question);
  // One schedule's rules for all drafts: the strictest.
  for (const Draft& draft : p.drafts) {
    const worlds::SchedulePrices its =
        schedule_prices(q, p.engine, draft.cost.rounds->kind(), draft.cost.draft.tells_kind());
    if (its.several >= question.schedule_prices.several) question.schedule_prices = its;
  }
  if (p.costs_hold_at_one_batch()) {
    question.batches.resize(1);
    if (q.emit) question.schedule_up_to = scheduled_up_to(q, question.batches);
    return question;
  }
  const bool several = question.batches.size() > 1 || q.max_num_seqs || q.emit;
  if (!q.points_only && several) question.schedule_up_to = scheduled_up_to(q, question.batches);
  return question;
}

/// Adds the acceptance of a draft, with its name if there are several drafts.
void assume_acceptance(const Draft& draft, bool one_of_several, std::vector<Assumption>& assumptions) {
  for (Assumption assumption : draft.acceptance.assumptions) {
    if (one_of_several) assumption.name = fmt::format("{}: {}", draft.name, assumption.name);
    append_new(assumptions, {assumption});
  }
}

}  // namespace

worlds::SchedulePrices schedule_prices(const PlanQuestion& question, const std::optional<std::string>& measured,
                                       cost::DraftKind kind, bool kind_told) {
  const auto engine = question.emit ? question.emit : planning::engine_named(measured.value_or(""));
  if (!engine) return {};
  return planning::schedule_prices(*engine, kind_told || question.emit ? kind : cost::DraftKind::eagle);
}

std::int64_t PlanQuestion::largest_compared_gamma(std::int64_t usual) const {
  return std::min(max_gamma.value_or(std::max(usual, gamma.value_or(0))), planning::largest_scanned_gamma);
}

bool Plan::costs_hold_at_one_batch() const {
  return std::any_of(drafts.begin(), drafts.end(), [](const Draft& draft) { return draft.cost.constants.has_value(); });
}

std::vector<Recommendation> Plan::recommendations() const {
  std::vector<Recommendation> all;
  for (const PointPlan& point : points()) {
    all.push_back({point.batch, point.context, point.certainty, point.share, point.optimal().gamma, point.speedup_estimate});
  }
  return all;
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
  constexpr auto largest_batch = static_cast<double>(planning::largest_scheduled_batch);
  require_rising("--batch", q.batch, {.hi = largest_batch, .lo_open = true});
  require_rising("--context", q.context, {.hi = largest_context});
  require_schedule(q.schedule);
  require_in("--max-gamma", q.max_gamma, {.lo = 1, .hi = static_cast<double>(largest_max_gamma)});
  require_in("--max-num-seqs", q.max_num_seqs, {.lo = 1, .hi = largest_batch});
  require_in("--tokens", q.tokens, {.lo = 1, .hi = 1e6});
  require_in("--c-hat", q.c_hat, {.hi = 1e12});
  require_in("--gamma", q.gamma, {.hi = unbounded});
  require_in("--min-gain", q.min_gain, {.hi = unbounded});
  require_in("--max-regret", q.max_regret, {.hi = 1});
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

void require_known(const Plan& p) {
  for (const ScheduleStretch& s : p.deployed) {
    if (s.gamma <= p.max_gamma) continue;
    refuse(p.question.gamma ? "--gamma" : "--schedule", fmt::format("{}", s.gamma),
           fmt::format("at most --max-gamma, {}", p.max_gamma));
  }
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
  append_new(p.warnings, acceptance.warnings);
  append_new(p.presets, acceptance.presets);
  p.files.insert(p.files.end(), acceptance.files.begin(), acceptance.files.end());
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
  require_known(p);
  for (const Draft& draft : p.drafts) p.misfits.push_back(why_not_served(draft, p));
  planning::DeploymentQuestion question = deployment_question(p);
  p.schedule_prices = question.schedule_prices;
  const double longest = *std::max_element(question.contexts.begin(), question.contexts.end());
  for (const Draft& draft : p.drafts)
    append_new(p.warnings, calibration_doubts(draft.cost, &draft.acceptance, longest));
  require_scheduled(p, question.batches);
  p.deployment = planning::plan_deployment(question);
  return p;
}

void compare_drafts(Plan& p) {
  if (!p.deployment.recommended_draft) return;
  constexpr double told = 0.95;
  std::vector<std::string> names;
  for (std::size_t rival = 0; rival < p.deployment.drafts.size(); ++rival) {
    const double share = p.deployment.share_better[rival];
    if (rival == p.shown() || !p.misfits[rival].empty() || share >= told) continue;
    names.push_back(fmt::format("{} (in {:.0f}% of worlds)", p.deployment.drafts[rival].name, 100 * share));
  }
  if (names.empty()) return;
  p.warnings.push_back({"drafts_not_told_apart", fmt::format("draft {} is not surely faster than {}",
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
  // What the exit code is for comes first.
  p.warnings.insert(
      p.warnings.begin(),
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
  if (p.schedule_prices.several > 0 && p.points().size() > 1)
    all.push_back({"a schedule by batch", "is nothing that the engine takes", "default"});
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
  const Acceptance& shown = p.drafts[p.shown()].acceptance;
  if (shown.rule) all.push_back({"acceptance", traces::name_of(*shown.rule), shown.rule_source});
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
    take_draft(&draft.acceptance, draft.cost);
  }
  Plan p = planned_points(std::move(drafts), question);
  conclude(nullptr, p);
  add_closed_form(p);
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
