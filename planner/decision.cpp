#include "planner/decision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/benchmark_command.hpp"
#include "planner/number_text.hpp"

namespace specdec::planner {
namespace {

using planning::PlannedStretch;
using planning::PointPlan;
using worlds::Certainty;

std::string tokens_text(std::int64_t gamma) { return counted(gamma, "token"); }

std::string speedup_text(double speedup) { return fmt::format("{}x", brief(speedup, speedup < 10 ? 3 : 2)); }

std::string range_text(const estimate::Interval& range) {
  return fmt::format("{} to {}", speedup_text(range.lo), speedup_text(range.hi));
}

bool has_width(const estimate::Interval& range) { return range.hi - range.lo > 1e-6 * range.hi; }

std::string gain_text(const Plan& plan) { return fmt::format("{}%", brief(100 * plan.min_gain, 3)); }

/// "sure to gain 5%", "likely (86%) to gain 5%", "open (40%) whether it gains 5%", "sure not to gain 5%".
std::string certainty_text(double share, const Plan& plan) {
  const Certainty certainty = worlds::certainty_of(share);
  const std::string gain = gain_text(plan);
  if (certainty == Certainty::no) return fmt::format("sure not to gain {}", gain);
  const std::string percent =
      share >= 0.995 ? std::string() : fmt::format(" ({:.0f}%)", std::floor(100 * share));
  return fmt::format("{}{} {} {}", worlds::name_of(certainty), percent,
                     certainty == Certainty::open ? "whether it gains" : "to gain", gain);
}

bool is_one_point(const Plan& plan) { return plan.points().size() == 1; }

/// The schedule with neighbours of one gamma joined; of a plan without one its points.
std::vector<PlannedStretch> stretches_of(const Plan& plan) {
  std::vector<PlannedStretch> stretches;
  const auto add = [&](const PlannedStretch& next) {
    if (!stretches.empty() && stretches.back().gamma == next.gamma) {
      PlannedStretch& last = stretches.back();
      last.batch_high = next.batch_high;
      last.basis = std::max(last.basis, next.basis);
      last.speedup = std::min(last.speedup, next.speedup);
      last.share = next.gamma == 0 ? std::max(last.share, next.share) : std::min(last.share, next.share);
    } else {
      stretches.push_back(next);
    }
  };
  for (const PlannedStretch& one : plan.shown_plan().schedule) add(one);
  if (!stretches.empty()) return stretches;
  for (const PointPlan& point : plan.points()) {
    const auto batch = static_cast<std::int64_t>(planning::whole_batch(point.batch));
    add({batch, batch, point.optimal().gamma, point.basis, point.optimal().speedup, point.share});
  }
  return stretches;
}

std::string drafts_text(const Plan& plan, std::int64_t gamma) {
  const auto& tree = plan.shown_plan().tree;
  return tree ? planning::name_of(*tree) : tokens_text(gamma);
}

/// " with NAME" where several drafts are compared.
std::string which_draft(const Plan& plan) {
  return plan.deployment.drafts.size() > 1 ? fmt::format(" with {}", plan.shown_plan().name) : "";
}

std::string action_at_point(const Plan& plan, const PointPlan& point) {
  const std::string requests = brief(planning::whole_batch(point.batch), 6);
  const std::string where = requests == "1" ? "" : fmt::format(" at {} requests", requests);
  const planning::DeploymentRow& best = point.optimal();
  if (best.gamma == 0) {
    const bool gains = point.rows[point.drafting_row].speedup > 1;
    return fmt::format("Do not draft{}: {}.", where, gains ? "the gain is too small" : "plain decoding loses least");
  }
  return fmt::format("Draft {}{}{}: about {} plain decoding.", drafts_text(plan, best.gamma), where, which_draft(plan),
                     speedup_text(best.speedup));
}

/// "Draft 3 tokens up to 12 requests at once, 2 up to 47, none beyond."
std::string action_of_schedule(const Plan& plan, const std::vector<PlannedStretch>& schedule) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const PlannedStretch& one = schedule[i];
    const bool last = i + 1 == schedule.size();
    const std::string where = last && i > 0   ? std::string("beyond")
                              : parts.empty() ? fmt::format("up to {} at once", counted(one.batch_high, "request"))
                                              : fmt::format("up to {}", one.batch_high);
    const std::string what = one.gamma == 0  ? std::string("none")
                             : parts.empty() ? drafts_text(plan, one.gamma)
                                             : fmt::format("{}", one.gamma);
    parts.push_back(fmt::format("{} {}", what, where));
  }
  const bool drafts =
      std::any_of(schedule.begin(), schedule.end(), [](const PlannedStretch& one) { return one.gamma > 0; });
  if (!drafts)
    return fmt::format("Do not draft up to {} at once: plain decoding loses least.",
                       counted(schedule.back().batch_high, "request"));
  return fmt::format("Draft{} {}.", which_draft(plan), fmt::join(parts, ", "));
}

/// " c prices 1 request alone: --hardware, --cost or --bench price 64 requests." where more are asked for.
std::string unpriced_text(const Plan& plan, const PointPlan& point) {
  const double asked = std::max(plan.question.batch.empty() ? 1 : plan.question.batch.back(),
                                static_cast<double>(plan.question.max_num_seqs.value_or(1)));
  if (!plan.costs_hold_at_one_batch() || asked <= point.batch) return "";
  return fmt::format(" c prices {} alone: --hardware, --cost or --bench price {} requests.",
                     counted(static_cast<std::int64_t>(planning::whole_batch(point.batch)), "request"),
                     brief(asked, 6));
}

/// What would change the answer of a point most.
std::string what_changes(const Plan& plan, const PointPlan& point) {
  const std::vector<AssumedVerification> assumed = assumed_verification(plan);
  if (!assumed.empty() && point.optimal().gamma > 0) {
    const AssumedVerification& first = assumed.front();
    const std::string then = first.gamma == 0 ? std::string("drafting loses")
                                              : fmt::format("it is {} with {}", speedup_text(first.speedup),
                                                            tokens_text(first.gamma));
    const std::string doubt =
        point.batch > 1 ? fmt::format(", which it is not for {} requests", brief(point.batch, 6)) : "";
    return fmt::format(" Verifying is taken as free{}; at {} plain steps {}.", doubt, brief(first.verify_factor, 2),
                       then);
  }
  const planning::Uncertainty& left = point.uncertainty;
  if (left.regret < planning::regret_that_matters) return "";
  if (plan.bench && plan.bench->kind_would_tell)
    return " Say how you draft: --draft-kind eagle, mtp, model or parallel tells most.";
  const bool by_cost = left.with_cost_known < left.with_acceptance_known;
  return fmt::format(" Most would be gained by measuring {}.", by_cost ? "what a round costs" : "what is accepted");
}

/// Where the best draft loses: what its round costs, and whether drafts that are always accepted would lose, too.
std::string cause_of_loss(const Plan& plan, const PointPlan& point, const planning::DeploymentRow& draft) {
  const double round = draft.time.total() / point.rows.front().time.total();
  constexpr double told = 1.05;
  if (draft.speedup >= 1 || !(round > told)) return "";
  const std::string cost =
      fmt::format(" A round with {} costs {} plain steps", tokens_text(draft.gamma), brief(round, 2));
  const double most = static_cast<double>(draft.gamma) + 1;
  if (round < most) return fmt::format("{}, for {} tokens.", cost, brief(draft.tokens_per_step, 2));
  return fmt::format("{} and puts out {} tokens at most.{}", cost, most,
                     plan.bench || plan.cost_from_log() ? " Look for what drafting switches off, such as CUDA graphs." : "");
}

std::string certainty_at_point(const Plan& plan, const PointPlan& point) {
  const planning::DeploymentRow& best = point.optimal();
  if (best.gamma == 0) {
    const planning::DeploymentRow& draft = point.rows[point.drafting_row];
    if (draft.gamma == 0) return "";
    const std::string speedup = has_width(draft.speedup_ci95) ? range_text(draft.speedup_ci95)
                                                              : speedup_text(draft.speedup);
    return fmt::format("With {}: {}, {}.{}{}", drafts_text(plan, draft.gamma), certainty_text(point.share, plan),
                       speedup, cause_of_loss(plan, point, draft), what_changes(plan, point));
  }
  std::string text = capitalised(certainty_text(point.share, plan));
  if (has_width(best.speedup_ci95)) text += fmt::format(", {}", range_text(best.speedup_ci95));
  if (point.deployed && point.deployed->gamma != best.gamma)
    text += fmt::format("; {} over the {} in use", certainty_text(point.deployed->share_over, plan), point.deployed->gamma);
  if (best.extrapolated) text += "; nothing was measured there";
  return text + "." + unpriced_text(plan, point) + what_changes(plan, point);
}

/// "Sure up to 42 requests (1.2x to 1.8x); likely up to 62 requests (1.1x).": of the batches asked and the stretches
/// beyond them; more requests are never surer.
std::string certainty_of_schedule(const Plan& plan) {
  struct Part {
    std::int64_t to;
    double share;
    estimate::Interval speedups;
  };
  std::vector<Part> found;
  std::int64_t asked = 0;
  for (const PointPlan& point : plan.points()) {
    const auto batch = static_cast<std::int64_t>(planning::whole_batch(point.batch));
    asked = std::max(asked, batch);
    if (point.optimal_row > 0) found.push_back({batch, point.share, estimate::exactly(point.optimal().speedup)});
  }
  for (const PlannedStretch& one : plan.shown_plan().schedule)
    if (one.gamma > 0 && one.batch_high > asked)
      found.push_back({one.batch_high, one.share, estimate::exactly(one.speedup)});
  std::sort(found.begin(), found.end(),
            [](const Part& a, const Part& b) { return std::tie(a.to, a.share) < std::tie(b.to, b.share); });
  std::vector<Part> parts;
  for (Part& part : found) {
    part.share = std::min(part.share, parts.empty() ? 1 : parts.back().share);
    if (parts.empty() || worlds::certainty_of(parts.back().share) != worlds::certainty_of(part.share)) {
      parts.push_back(part);
    } else {
      parts.back() = {part.to, part.share, estimate::hull(parts.back().speedups, part.speedups)};
    }
  }
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    const std::string speedups =
        has_width(part.speedups) ? range_text(part.speedups) : speedup_text(part.speedups.lo);
    texts.push_back(fmt::format("{} up to {} ({})", worlds::name_of(worlds::certainty_of(part.share)),
                                counted(part.to, "request"), speedups));
  }
  return texts.empty() ? "" : capitalised(fmt::format("{}.", fmt::join(texts, "; ")));
}

/// " SGLang takes one length for all loads with drafts of the kind model." where the engine keeps the schedule from
/// being another.
std::string held_text(const Plan& plan) {
  const planning::DraftPlan& shown = plan.shown_plan();
  if (!shown.held_by) return "";
  const std::string engine(planning::title_of(plan.question.emit.value_or(engine_of(plan))));
  if (shown.tree) return fmt::format(" {} takes one tree for all loads.", engine);
  if (!std::isinf(shown.held_by->several)) {
    const char* const rule = std::isinf(shown.held_by->per_rise) ? "takes the longest drafts first, and never none"
                                                                 : "drafts at all loads or at none";
    return fmt::format(" {} {}.", engine, rule);
  }
  const cost::DraftKind kind = plan.cost().kind();
  const std::string of_kind =
      plan.deployment.drafts.size() > 1 ? "" : fmt::format(" with drafts of the kind {}", cost::name_of(kind));
  return fmt::format(" {} takes one length for all loads{}{}.", engine, of_kind,
                     kind == cost::DraftKind::model ? "; --draft-kind names another" : "");
}

/// " Over the 3 in use: likely (80%) to gain 5% at 48 requests."
std::string certainty_over(const Plan& plan, const std::optional<DecidedOver>& over) {
  const auto& points = plan.points();
  const bool changes = std::any_of(points.begin(), points.end(), [](const PointPlan& point) {
    return point.deployed && point.optimal().gamma != point.deployed->gamma;
  });
  if (!over || !changes) return "";
  return fmt::format(" Over the {} in use: {} at {}.", over->gamma, certainty_text(over->share, plan),
                     counted(static_cast<std::int64_t>(planning::whole_batch(over->batch)), "request"));
}

/// The least of the points that draft; the largest of all if none does.
double share_of(const Plan& plan) {
  std::optional<double> least;
  double largest = 0;
  for (const PointPlan& point : plan.points()) {
    largest = std::max(largest, point.share);
    if (point.optimal_row > 0) least = std::min(least.value_or(1), point.share);
  }
  return least.value_or(largest);
}

DecidedSpeedup speedup_of(const Plan& plan, const Decision& decision) {
  DecidedSpeedup speedup;
  const PointPlan& first = plan.points().front();
  speedup.share = share_of(plan);
  if (is_one_point(plan) && decision.gamma) {
    speedup.value = first.optimal().speedup;
    if (first.optimal().speedup_bounds) {
      speedup.bounds = first.optimal().speedup_bounds;
    } else if (has_width(first.optimal().speedup_ci95)) {
      speedup.ci95 = first.optimal().speedup_ci95;
    }
    return speedup;
  }
  for (const PointPlan& point : plan.points()) {
    const estimate::Interval its = estimate::exactly(point.optimal().speedup);
    speedup.bounds = speedup.bounds ? estimate::hull(*speedup.bounds, its) : its;
  }
  return speedup;
}

std::optional<DecidedOver> over_of(const Plan& plan) {
  std::optional<DecidedOver> over;
  for (const PointPlan& point : plan.points()) {
    if (point.deployed && (!over || point.deployed->share_over > over->share))
      over = DecidedOver{point.deployed->gamma, point.deployed->share_over, point.batch};
  }
  return over;
}

void add_next(const Plan& plan, Decision& decision) {
  std::optional<planning::NextMeasurement> next;
  if (const std::optional<planning::NextRun> run = plan.next_run()) {
    next = {run->gamma, run->batch, run->context};
    decision.next = next_run_command(plan);
    decision.purpose =
        fmt::format("to lower the expected loss from {} to {} in {} minutes", percent(plan.run_values->regret),
                    percent(run->regret_after), brief(run->minutes, 2));
  } else {
    const auto told = std::find_if(plan.points().begin(), plan.points().end(),
                                   [](const PointPlan& point) { return point.next.has_value(); });
    if (told == plan.points().end()) return;
    next = told->next;
    decision.next = benchmark_command(plan, *next);
  }
  decision.server = server_setting(engine_of(plan), *next, plan.cost().kind());
}

}  // namespace

std::vector<AssumedVerification> assumed_verification(const Plan& plan) {
  std::vector<AssumedVerification> assumed;
  if (!is_one_point(plan) || plan.drafts.size() != 1 || !plan.drafts.front().cost.constants) return assumed;
  const StepTimes& times = *plan.drafts.front().cost.constants;
  const PointPlan& point = plan.points().front();
  if (times.verify_factor || !times.c) return assumed;
  for (const double factor : {1.2, 1.4}) {
    AssumedVerification best{factor, 0, 1 + plan.min_gain};
    for (const planning::DeploymentRow& row : point.rows) {
      if (row.gamma == 0) continue;
      const double speedup = row.tokens_per_step / (row.time.total() / point.rows.front().time.total() + factor - 1);
      if (speedup > best.speedup * (1 + worlds::alike_regrets)) best = {factor, row.gamma, speedup};
    }
    if (best.gamma == 0) best.speedup = 1;
    assumed.push_back(best);
  }
  return assumed;
}

Decision decision_of(const Plan& plan) {
  Decision decision;
  decision.schedule = stretches_of(plan);
  const bool one_gamma = decision.schedule.size() == 1;
  if (one_gamma) decision.gamma = decision.schedule.front().gamma;
  decision.speedup = speedup_of(plan, decision);
  const auto doubted = std::find_if(plan.points().begin(), plan.points().end(),
                                    [](const PointPlan& point) { return !point.doubt.empty(); });
  const bool is_doubted = doubted != plan.points().end();
  decision.verdict = worlds::certainty_of(*decision.speedup.share);
  decision.over = over_of(plan);
  if (is_one_point(plan)) {
    decision.action = action_at_point(plan, plan.points().front());
    decision.certainty = certainty_at_point(plan, plan.points().front());
  } else {
    decision.action = action_of_schedule(plan, decision.schedule);
    decision.certainty = certainty_of_schedule(plan) + held_text(plan) + certainty_over(plan, decision.over);
  }
  std::vector<std::string> obstacles;
  if (is_doubted) obstacles.push_back(fmt::format("Nothing is decided: {}.", doubted->doubt));
  if (!plan.shortfall.empty()) obstacles.push_back(fmt::format("This does not fit: {}.", plan.shortfall));
  if (!plan.misfit().empty())
    obstacles.push_back(fmt::format("No server starts with this draft: {}.", plan.misfit()));
  if (!obstacles.empty()) {
    decision.verdict = Certainty::open;
    decision.certainty = fmt::format("Otherwise: {}", decision.action);
    decision.action = fmt::format("{}", fmt::join(obstacles, " "));
  }
  if (plan.shortfall.empty() && plan.misfit().empty()) add_next(plan, decision);
  return decision;
}

}  // namespace specdec::planner
