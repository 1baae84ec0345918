#include "analysis/planning/deployment_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/planning/batch_schedule.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {
namespace {

constexpr double largest = std::numeric_limits<double>::max();
constexpr double smallest = std::numeric_limits<double>::min();

void require_all(std::string_view name, const std::vector<double>& values, double lo) {
  if (values.empty()) throw std::invalid_argument(fmt::format("plan_deployment: {} is empty", name));
  for (const double value : values) core::require_in("plan_deployment", name, value, lo, largest);
}

void require_drafts(const std::vector<DeploymentDraft>& drafts) {
  if (drafts.empty()) throw std::invalid_argument("plan_deployment: drafts is empty");
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const DeploymentDraft& draft = drafts[i];
    if (!draft.acceptance || !draft.cost) {
      throw std::invalid_argument(fmt::format("plan_deployment: draft {} lacks its acceptance or cost", draft.name));
    }
    core::require_in("plan_deployment", "prediction_error", draft.prediction_error, 0, largest);
    if (draft.clusters) {
      core::require_in("plan_deployment", "clusters", *draft.clusters, 0, std::numeric_limits<std::int64_t>::max());
    }
    const auto same = [&](const DeploymentDraft& other) { return other.name == draft.name; };
    if (std::any_of(drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      throw std::invalid_argument(fmt::format("plan_deployment: two drafts are named {}", draft.name));
    }
  }
}

void require_stretches(const DeploymentQuestion& question) {
  std::int64_t after = 0;
  for (const ScheduleStretch& stretch : question.deployed) {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    core::require_in("plan_deployment", "batch_low", stretch.batch_low, after + 1, any);
    core::require_in("plan_deployment", "batch_high", stretch.batch_high, stretch.batch_low, any);
    core::require_in("plan_deployment", "deployed gamma", stretch.gamma, 0, question.max_gamma);
    after = stretch.batch_high;
  }
}

void require_question(const DeploymentQuestion& question) {
  require_drafts(question.drafts);
  require_all("batch", question.batches, smallest);
  require_all("context", question.contexts, 0);
  for (const PlanPoint& point : question.points) {
    core::require_in("plan_deployment", "batch", point.batch, smallest, largest);
    core::require_in("plan_deployment", "context", point.context, 0, largest);
  }
  core::require_in("plan_deployment", "max_gamma", question.max_gamma, 1, largest_scanned_gamma);
  core::require_in("plan_deployment", "tolerance", question.tolerance, 0, 1 - 1e-9);
  core::require_in("plan_deployment", "prefer_measured", question.prefer_measured, 0, 1 - 1e-9);
  core::require_in("plan_deployment", "min_gain", question.min_gain, 0, largest);
  if (question.max_regret) core::require_in("plan_deployment", "max_regret", *question.max_regret, 0, 1);
  if (question.schedule_up_to) {
    core::require_in("plan_deployment", "schedule_up_to", *question.schedule_up_to, 1, largest_scheduled_batch);
  }
  require_stretches(question);
}

/// The gamma deployed at a batch, which need not be whole and is rounded.
std::optional<std::int64_t> deployed_at(const DeploymentQuestion& question, double batch) {
  if (question.deployed.empty()) return std::nullopt;
  const double whole = std::max(1.0, std::round(batch));
  for (const ScheduleStretch& stretch : question.deployed) {
    if (static_cast<double>(stretch.batch_low) <= whole && whole <= static_cast<double>(stretch.batch_high)) {
      return stretch.gamma;
    }
  }
  throw std::invalid_argument(fmt::format("plan_deployment: what is deployed leaves out batch {}", whole));
}

/// Says where a gamma that was measured was preferred to a faster one beyond.
template <class Note>
void note_preference(const DraftPlan& plan, const Note& note) {
  std::size_t points = 0;
  double most = 0;
  for (const PointPlan& point : plan.points) {
    if (!point.passed_over_row) continue;
    ++points;
    most = std::max(most, point.rows[*point.passed_over_row].speedup / point.optimal().speedup - 1);
  }
  if (points == 0) return;
  note(
      "measured_preferred",
      fmt::format("at {} of {} points a gamma beyond what was measured would be up to {:.2g}% faster if all goes on as "
                  "before; the best one that was measured is taken",
                  points, plan.points.size(), 100 * most));
}

/// Says where points of a draft are less than what was asked for.
void note_limits(const DraftScan& scan, const DeploymentQuestion& question, DraftPlan& plan) {
  const auto note = [&](std::string code, std::string message) {
    plan.notes.push_back({std::move(code), std::move(message)});
  };
  if (!scan.acceptance_limit().empty()) {
    note("gamma_not_known",
         fmt::format("gammas above {} are left out: {}", scan.tokens().size() - 1, scan.acceptance_limit()));
  }
  const auto short_of = [&](const PointPlan& point) { return point.rows.size() < scan.tokens().size(); };
  const auto unpriced = std::find_if(plan.points.begin(), plan.points.end(), short_of);
  if (unpriced != plan.points.end()) {
    std::vector<cost::RoundTime> times;
    std::string limit;
    scan.price(unpriced->batch, unpriced->context, times, &limit);
    note("gamma_not_priced",
         fmt::format("at {} of {} points, the first at batch {:g} and context {:g}, gammas above {} are left out: {}",
                     std::count_if(plan.points.begin(), plan.points.end(), short_of), plan.points.size(),
                     unpriced->batch, unpriced->context, unpriced->rows.size() - 1, limit));
  }
  const auto count = [&](auto condition) { return std::count_if(plan.points.begin(), plan.points.end(), condition); };
  const auto at_limit = count([](const PointPlan& point) { return point.at_limit; });
  if (at_limit > 0) {
    note("optimum_at_limit", fmt::format("at {} of {} points the best gamma is the largest one that was compared",
                                         at_limit, plan.points.size()));
  }
  const auto extrapolated = count([](const PointPlan& point) { return point.optimal().extrapolated; });
  if (extrapolated > 0) {
    note("optimum_extrapolated",
         fmt::format("at {} of {} points the best gamma lies beyond what was measured, which its interval knows "
                     "nothing of",
                     extrapolated, plan.points.size()));
  }
  note_preference(plan, note);
  if (!question.schedule_up_to) return;
  const auto held = [](const ScheduleStretch& stretch) { return stretch.held; };
  if (plan.schedule.empty()) {
    note("batch_not_priced", "no whole batch has a known cost, so there is no schedule");
  } else if (std::any_of(plan.schedule.begin(), plan.schedule.end(), held)) {
    note("batch_not_priced", "batches without a known cost have the gamma of their neighbours in the schedule");
  }
}

std::vector<PlanPoint> points_of(const DeploymentQuestion& question) {
  if (!question.points.empty()) return question.points;
  std::vector<PlanPoint> points;
  for (const double context : question.contexts) {
    for (const double batch : question.batches) points.push_back({batch, context});
  }
  return points;
}

DraftPlan plan_draft(const DeploymentDraft& draft, const DeploymentQuestion& question) {
  const DraftScan scan(draft, question.max_gamma);
  DraftPlan plan;
  plan.name = draft.name;
  const std::vector<PlanPoint> points = points_of(question);
  plan.points.reserve(points.size());
  for (const auto& [batch, context] : points) {
    plan.points.push_back(plan_point(scan, batch, context, question, deployed_at(question, batch)));
  }
  if (question.schedule_up_to) {
    plan.schedule =
        batch_schedule(scan, question.contexts, *question.schedule_up_to, question.tolerance, question.prefer_measured);
    plan.crossover_batch = crossover_batch(plan.schedule);
  }
  note_limits(scan, question, plan);
  return plan;
}

/// What drafts are compared by at a point, the smaller the better: seconds per output token where all know them, else
/// the same in plain steps.
double slowness(const DeploymentPlan& plan, const DeploymentQuestion& question, std::size_t draft, std::size_t point) {
  const auto in_seconds = [](const DeploymentDraft& d) { return d.cost->in_seconds(); };
  const PointPlan& at = plan.drafts[draft].points[point];
  const bool seconds = std::all_of(question.drafts.begin(), question.drafts.end(), in_seconds);
  return seconds ? at.seconds_per_output_token->speculative : 1 / at.optimal().speedup;
}

/// The draft that loses least against the best one of each point, where it loses most; less mean loss breaks ties.
void compare_drafts(const DeploymentQuestion& question, DeploymentPlan& plan) {
  const std::size_t drafts = plan.drafts.size();
  const std::size_t points = plan.drafts[0].points.size();
  std::vector<double> worst(drafts), sum(drafts);
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> slow;
    for (std::size_t draft = 0; draft < drafts; ++draft) slow.push_back(slowness(plan, question, draft, point));
    const auto best = static_cast<std::size_t>(std::min_element(slow.begin(), slow.end()) - slow.begin());
    const bool pays = plan.drafts[best].points[point].optimal_row > 0;
    plan.best_draft.push_back(pays ? std::optional(best) : std::nullopt);
    for (std::size_t draft = 0; draft < drafts; ++draft) {
      const double loss = 1 - slow[best] / slow[draft];
      worst[draft] = std::max(worst[draft], loss);
      sum[draft] += loss;
    }
  }
  const auto found = [](const std::optional<std::size_t>& draft) { return draft.has_value(); };
  if (std::none_of(plan.best_draft.begin(), plan.best_draft.end(), found)) return;
  std::size_t recommended = 0;
  for (std::size_t draft = 1; draft < drafts; ++draft) {
    if (std::pair(worst[draft], sum[draft]) < std::pair(worst[recommended], sum[recommended])) recommended = draft;
  }
  plan.recommended_draft = recommended;
}

}  // namespace

DeploymentPlan plan_deployment(const DeploymentQuestion& question) {
  require_question(question);
  DeploymentPlan plan;
  for (const DeploymentDraft& draft : question.drafts) {
    plan.drafts.push_back(plan_draft(draft, question));
    for (const PointPlan& point : plan.drafts.back().points) {
      if (point.deployed && point.deployed->exceeds_max_regret) plan.exceeds_max_regret = true;
    }
  }
  compare_drafts(question, plan);
  return plan;
}

}  // namespace specdec::planning
