#include "analysis/planning/deployment_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/planning/batch_schedule.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {
namespace {

constexpr double least_normal = std::numeric_limits<double>::min();

void require_all(std::string_view name, const std::vector<double>& values, double lo) {
  if (values.empty()) throw std::invalid_argument(fmt::format("plan_deployment: {} is empty", name));
  for (const double value : values) core::require_in("plan_deployment", name, value, lo, core::largest_double);
}

void require_drafts(const std::vector<DeploymentDraft>& drafts) {
  if (drafts.empty()) throw std::invalid_argument("plan_deployment: drafts is empty");
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const DeploymentDraft& draft = drafts[i];
    if (!draft.acceptance || !draft.cost) {
      throw std::invalid_argument(fmt::format("plan_deployment: draft {} lacks its acceptance or cost", draft.name));
    }
    for (const MeasuredSpeedup& run : draft.measured) {
      core::require_in("plan_deployment", "measured gamma", run.gamma, 1, largest_scanned_gamma);
      core::require_in("plan_deployment", "measured batch", run.batch, least_normal, core::largest_double);
      core::require_in("plan_deployment", "measured context", run.context, 0, core::largest_double);
      core::require_in("plan_deployment", "measured speedup", run.speedup, least_normal, core::largest_double);
    }
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
  require_all("batch", question.batches, least_normal);
  require_all("context", question.contexts, 0);
  for (const PlanPoint& point : question.points) {
    core::require_in("plan_deployment", "batch", point.batch, least_normal, core::largest_double);
    core::require_in("plan_deployment", "context", point.context, 0, core::largest_double);
  }
  core::require_in("plan_deployment", "max_gamma", question.max_gamma, 1, largest_scanned_gamma);
  core::require_in("plan_deployment", "tolerance", question.tolerance, 0, 1 - 1e-9);
  core::require_in("plan_deployment", "prefer_measured", question.prefer_measured, 0, 1 - 1e-9);
  core::require_in("plan_deployment", "min_gain", question.min_gain, 0, core::largest_double);
  if (question.max_regret) core::require_in("plan_deployment", "max_regret", *question.max_regret, 0, 1);
  if (question.schedule_up_to) {
    core::require_in("plan_deployment", "schedule_up_to", *question.schedule_up_to, 1, largest_scheduled_batch);
  }
  require_stretches(question);
}

/// The gamma deployed at a batch, which is rounded if it is not an integer.
std::optional<std::int64_t> deployed_at(const DeploymentQuestion& question, double batch) {
  if (question.deployed.empty()) return std::nullopt;
  const double whole = whole_batch(batch);
  for (const ScheduleStretch& stretch : question.deployed) {
    if (static_cast<double>(stretch.batch_low) <= whole && whole <= static_cast<double>(stretch.batch_high)) {
      return stretch.gamma;
    }
  }
  throw std::invalid_argument(fmt::format("plan_deployment: what is deployed leaves out batch {}", whole));
}

/// The planned gain in speed of a gamma beyond what was measured over the one preferred to it; 0 where none is.
double passed_over_gain(const PointPlan& point) {
  if (!point.passed_over_row) return 0;
  const std::size_t preferred = point.unsure_row.value_or(*point.optimal_row);
  return point.rows[*point.passed_over_row].speedup / point.rows[preferred].speedup - 1;
}

/// Notes where a surer gamma, or plain decoding, was preferred to a faster one beyond the longest measured.
/// @param ends  the points at the first and last batches of the schedule's stretches
template <class Note>
void note_preference(const DraftPlan& plan, const std::vector<PointPlan>& ends, const DeploymentQuestion& question,
                     const Note& note) {
  const auto less = [](const PointPlan& a, const PointPlan& b) { return passed_over_gain(a) < passed_over_gain(b); };
  const auto most = [&](const std::vector<PointPlan>& points) {
    const auto its = std::max_element(points.begin(), points.end(), less);
    return its == points.end() ? 0 : passed_over_gain(*its);
  };
  const auto passed_over = [](const PointPlan& point) { return point.passed_over_row.has_value(); };
  const auto points = std::count_if(plan.points.begin(), plan.points.end(), passed_over);
  const double at_points = most(plan.points), at_ends = most(ends);
  const bool plain =
      std::any_of(plan.points.begin(), plan.points.end(), [](const PointPlan& point) { return point.prefers_plain(); });
  if (points == 0 && at_ends == 0) return;
  std::string in_schedule;
  if (at_ends > at_points) {
    const PointPlan& worst = *std::max_element(ends.begin(), ends.end(), less);
    in_schedule = fmt::format("in the schedule {:.3g}%, at batch {:.3g}", 100 * at_ends, worst.batch);
  }
  const std::string gain =
      points == 0 ? fmt::format("a gamma beyond what was measured would be faster, {},", in_schedule)
                  : fmt::format("at {} of {} points a gamma beyond what was measured would be up to {:.3g}% faster{}",
                                points, plan.points.size(), 100 * at_points,
                                in_schedule.empty() ? "" : fmt::format(" ({})", in_schedule));
  note(
      "measured_preferred",
      fmt::format("{} if all goes on as before, but no gain of more than {:.2g}% over what was measured is sure of it; "
                  "the best one of which it is, or else up to the longest measured one, is taken{}",
                  gain, 100 * question.prefer_measured, plain ? ", or plain decoding where that is faster" : ""));
}

using AddNote = std::function<void(std::string code, std::string message)>;

/// "at batch 9" or "from batch 9 to 64".
std::string batches_text(const PlannedStretch& stretch) {
  return stretch.batch_low == stretch.batch_high
             ? fmt::format("at batch {}", stretch.batch_low)
             : fmt::format("from batch {} to {}", stretch.batch_low, stretch.batch_high);
}

std::string all_batches(const std::vector<PlannedStretch>& schedule, PriceBasis basis) {
  std::vector<PlannedStretch> joined;
  for (const PlannedStretch& stretch : schedule) {
    if (stretch.basis != basis) continue;
    if (!joined.empty() && joined.back().batch_high + 1 == stretch.batch_low) {
      joined.back().batch_high = stretch.batch_high;
    } else {
      joined.push_back(stretch);
    }
  }
  std::vector<std::string> texts;
  for (const PlannedStretch& stretch : joined) texts.push_back(batches_text(stretch));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Notes where points have fewer gammas than were to be compared, or none.
void note_prices(const DraftScan& scan, const DraftPlan& plan, const AddNote& note) {
  const auto report = [&](std::string_view code, const auto& concerned, const auto& what) {
    const auto first = std::find_if(plan.points.begin(), plan.points.end(), concerned);
    if (first == plan.points.end()) return;
    note(std::string(code), fmt::format("at {} of {} points, the first at batch {:g} and context {:g}, {}",
                                        std::count_if(plan.points.begin(), plan.points.end(), concerned),
                                        plan.points.size(), first->batch, first->context, what(*first)));
  };
  const cost::RoundCost& cost = *scan.draft().cost;
  report(
      "batch_not_timed",
      [&](const PointPlan& point) {
        return point.basis != PriceBasis::not_priced && !cost.about_batch(point.batch).empty();
      },
      [&](const PointPlan& point) { return cost.about_batch(point.batch); });
  report(
      "point_not_priced", [](const PointPlan& point) { return point.basis == PriceBasis::not_priced; },
      [](const PointPlan& point) { return "no price tells whether drafts pay: " + point.price_limit; });
  report(
      "gamma_not_priced",
      [&](const PointPlan& point) {
        return point.basis != PriceBasis::not_priced && point.rows.size() < scan.tokens().size();
      },
      [](const PointPlan& point) {
        return fmt::format("gammas above {} are left out: {}", point.rows.size() - 1, point.price_limit);
      });
}

void note_schedule(const DraftPlan& plan, const DeploymentQuestion& question, const AddNote& note) {
  const std::string unpriced = all_batches(plan.schedule, PriceBasis::not_priced);
  if (!unpriced.empty()) {
    note("batch_not_priced",
         fmt::format("{} the schedule has no gamma, since no price tells whether drafts pay", unpriced));
  }
  const std::string beyond = all_batches(plan.schedule, PriceBasis::extrapolated);
  if (beyond.empty()) return;
  note(
      "schedule_extrapolated",
      fmt::format("{} the schedule lies beyond what was measured: its gamma is the best one if all goes on as before{}",
                  beyond, question.extrapolate ? "" : ", and nothing is decided there"));
}

/// True if nothing but the default max_gamma limits which gammas are compared.
bool limits_by_default(const DraftScan& scan, const DeploymentQuestion& question) {
  return question.max_gamma_is_default && static_cast<std::int64_t>(scan.tokens().size()) == question.max_gamma + 1;
}

/// Notes where points of a draft are less than was requested.
void note_limits(const DraftScan& scan, const std::vector<PointPlan>& ends, const DeploymentQuestion& question,
                 DraftPlan& plan) {
  const AddNote note = [&](std::string code, std::string message) {
    plan.notes.push_back({std::move(code), std::move(message)});
  };
  if (!scan.acceptance_limit().empty()) {
    note("gamma_not_known",
         fmt::format("gammas above {} are left out: {}", scan.tokens().size() - 1, scan.acceptance_limit()));
  }
  note_prices(scan, plan, note);
  const auto count = [&](auto condition) { return std::count_if(plan.points.begin(), plan.points.end(), condition); };
  std::set<std::size_t> limits;
  for (const PointPlan& point : plan.points) {
    if (point.at_limit) limits.insert(point.rows.size() - 1);
  }
  if (!limits.empty()) {
    note("optimum_at_limit",
         fmt::format(
             "at {} of {} points the {} gamma is the largest one that was compared there, {}{}",
             count([](const PointPlan& point) { return point.at_limit; }), plan.points.size(),
             scan.has_range() ? "best" : "fastest",
             limits.size() == 1 ? fmt::format("{}", *limits.begin())
                                : fmt::format("{} to {}", *limits.begin(), *limits.rbegin()),
             limits_by_default(scan, question) && *limits.begin() == static_cast<std::size_t>(question.max_gamma)
                 ? fmt::format("; the smallest one that loses at most {:g}% to it is taken", 100 * question.tolerance)
                 : ", and larger ones may be faster"));
  }
  const auto is_beyond = [&](const PointPlan& point) {
    if (!point.optimal_row) return false;
    const auto gamma = static_cast<std::int64_t>(*point.optimal_row);
    return scan.at(point.context).tokens()[*point.optimal_row].extrapolated ||
           scan.draft().cost->extrapolates(scan.point(gamma, point.batch, point.context));
  };
  const auto extrapolated = count(is_beyond);
  const auto without_plain = count(
      [&](const PointPlan& point) { return point.optimal_row && point.optimal()->extrapolated && !is_beyond(point); });
  if (without_plain > 0) {
    note("plain_extrapolated",
         fmt::format("at {} of {} points the best gamma was measured, but not the plain decoding that its speedup is "
                     "over: a run without speculation there is missing",
                     without_plain, plan.points.size()));
  }
  if (extrapolated > 0) {
    note("optimum_extrapolated",
         fmt::format("at {} of {} points the best gamma lies outside what was measured; its interval {}, and {}",
                     extrapolated, plan.points.size(),
                     scan.draft().acceptance->assumes_beyond()
                         ? "takes the acceptance that was chosen for longer drafts as true and holds no other reading"
                         : "holds the readings of acceptance there",
                     scan.draft().cost->replicates() > 0
                         ? "of its cost what the fit expects to err, which no run there tests"
                         : "no error of extrapolated costs"));
  }
  note_preference(plan, ends, question, note);
  note_schedule(plan, question, note);
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
  std::vector<PointPlan> ends;
  if (question.schedule_up_to) {
    ScheduleRule rule = {question.tolerance, question.prefer_measured, question.min_gain,
                         limits_by_default(scan, question), question.extrapolate};
    for (const PlanPoint& point : points) rule.points.push_back(point.batch);
    const std::vector<BatchVerdict> verdicts = batch_verdicts(scan, *question.schedule_up_to, question, rule);
    const BatchSchedule schedule = batch_schedule(scan, question.contexts, *question.schedule_up_to, rule, verdicts);
    plan.schedule = with_verdicts(schedule.stretches, verdicts);
    plan.fixed = schedule.fixed;
    for (const PlannedStretch& stretch : plan.schedule) {
      if (!decides(stretch.basis, question.extrapolate)) continue;
      for (const double context : question.contexts) {
        for (const std::int64_t batch : {stretch.batch_low, stretch.batch_high}) {
          ends.push_back(plan_point(scan, priced_at(batch, rule), context, question, std::nullopt));
        }
      }
    }
    plan.crossover_batch = crossover_batch(plan.schedule, question.extrapolate);
    if (plan.crossover_batch) plan.crossover_bounds = crossover_bounds(plan.schedule, *plan.crossover_batch);
  }
  note_limits(scan, ends, question, plan);
  return plan;
}

/// Explains why not even plain decoding has a price, if that is so at every point.
void require_some_price(const DeploymentQuestion& question, const DeploymentPlan& plan) {
  for (const DraftPlan& draft : plan.drafts) {
    for (const PointPlan& point : draft.points) {
      if (!point.rows.empty()) return;
    }
  }
  const PointPlan& first = plan.drafts[0].points[0];
  static_cast<void>(question.drafts[0].cost->round({0, first.batch, first.context, 0}));
}

/// The measure by which drafts are compared at a point, the smaller the better: seconds per output token if all know
/// them, else the same in plain steps; infinite without an optimum, and for a draft that cannot be served beside one
/// that can.
double slowness(const DeploymentPlan& plan, const DeploymentQuestion& question, std::size_t draft, std::size_t point) {
  const auto in_seconds = [](const DeploymentDraft& d) { return d.cost->in_seconds(); };
  const PointPlan& at = plan.drafts[draft].points[point];
  const auto can_be_served = [](const DeploymentDraft& d) { return d.can_be_served; };
  const bool is_out = !question.drafts[draft].can_be_served &&
                      std::any_of(question.drafts.begin(), question.drafts.end(), can_be_served);
  if (!at.optimal_row || is_out) return std::numeric_limits<double>::infinity();
  const bool seconds = std::all_of(question.drafts.begin(), question.drafts.end(), in_seconds);
  return seconds ? at.seconds_per_output_token->speculative : 1 / at.optimal()->speedup;
}

}  // namespace

void choose_draft(const std::function<double(std::size_t draft, std::size_t point)>& slowness, DeploymentPlan& plan) {
  const std::size_t drafts = plan.drafts.size();
  const std::size_t points = plan.drafts[0].points.size();
  std::vector<double> worst(drafts), sum(drafts);
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> slow;
    for (std::size_t draft = 0; draft < drafts; ++draft) slow.push_back(slowness(draft, point));
    const auto best = static_cast<std::size_t>(std::min_element(slow.begin(), slow.end()) - slow.begin());
    const bool pays = plan.drafts[best].points[point].optimal_row.value_or(0) > 0;
    plan.best_draft.push_back(pays ? std::optional(best) : std::nullopt);
    if (std::isinf(slow[best])) continue;
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

void take_verdict(const PointPlan& wider, PointPlan& point) {
  PointPlan taken = wider;
  for (std::size_t i = 0; i < taken.rows.size(); ++i) {
    const bool sure = taken.rows[i].sure;
    taken.rows[i] = point.rows[i];
    taken.rows[i].sure = sure;
  }
  if (point.optimal_row == wider.optimal_row) {
    taken.speedup_estimate = point.speedup_estimate;
    taken.interval_share = point.interval_share;
    taken.worst_regret = point.worst_regret;
    taken.deployed = point.deployed;
  } else if (taken.speedup_estimate) {
    taken.speedup_estimate->ci95 = taken.optimal()->speedup_ci95;
  }
  point = std::move(taken);
}

DeploymentPlan plan_deployment(const DeploymentQuestion& question) {
  require_question(question);
  DeploymentPlan plan;
  for (const DeploymentDraft& draft : question.drafts) {
    plan.drafts.push_back(plan_draft(draft, question));
    for (const PointPlan& point : plan.drafts.back().points) {
      if (point.deployed && point.deployed->exceeds_max_regret) plan.exceeds_max_regret = true;
    }
  }
  require_some_price(question, plan);
  choose_draft([&](std::size_t draft, std::size_t point) { return slowness(plan, question, draft, point); }, plan);
  return plan;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::speculate:
      return "speculate";
    case Verdict::do_not_speculate:
      return "do not speculate";
    case Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

std::string_view name_of(UncertaintySource source) {
  switch (source) {
    case UncertaintySource::acceptance:
      return "acceptance";
    case UncertaintySource::cost:
      return "cost";
    case UncertaintySource::extrapolation:
      break;
  }
  return "extrapolation";
}

std::string_view name_of(PriceBasis basis) {
  switch (basis) {
    case PriceBasis::measured:
      return "measured";
    case PriceBasis::stated:
      return "stated";
    case PriceBasis::modelled:
      return "modelled";
    case PriceBasis::extrapolated:
      return "extrapolated";
    case PriceBasis::not_priced:
      break;
  }
  return "not_priced";
}

}  // namespace specdec::planning
