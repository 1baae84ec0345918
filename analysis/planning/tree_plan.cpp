#include "analysis/planning/tree_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/core/normal_interval.hpp"
#include "analysis/planning/batch_schedule.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {
namespace {

class TreePlanner {
 public:
  TreePlanner(const TreeDraft& draft, const DeploymentQuestion& question) : draft_(draft), question_(question) {}

  PointPlan plan(double batch, double context) const;

 private:
  void judge(PointPlan& plan, const LogError& acceptance, const LogError& cost) const;

  const TreeDraft& draft_;
  const DeploymentQuestion& question_;
};

PointPlan TreePlanner::plan(double batch, double context) const {
  PointPlan plan;
  plan.batch = batch;
  plan.context = context;
  const cost::RoundPoint at_plain{0, batch, context, 0};
  const cost::RoundPoint at_tree{draft_.tree.depth, batch, context, draft_.tokens.full_accepts};
  const double tokens = draft_.tokens.value;
  DeploymentRow plain, tree;
  plain.time = draft_.cost->round(at_plain);
  plain.extrapolated = draft_.cost->extrapolates(at_plain);
  tree.gamma = draft_.tree.depth;
  tree.time = draft_.cost->round(at_tree);
  tree.extrapolated = plain.extrapolated || draft_.cost->extrapolates(at_tree);
  tree.tokens_per_step = tokens;
  const double ratio = plain.time.total() / tree.time.total();
  const LogError acceptance = error_of_tokens(draft_.tokens), cost = error_of_ratio(*draft_.cost, at_plain, at_tree);
  tree.tokens_interval = {tokens * std::exp(-acceptance.below), tokens * std::exp(acceptance.above)};
  tree.speedup = tokens * ratio;
  tree.speedup_ci95 = {tree.speedup * std::exp(-core::half_of_both(acceptance.below, cost.below)),
                       tree.speedup * std::exp(core::half_of_both(acceptance.above, cost.above))};
  const double best = std::max(1.0, tree.speedup);
  plain.regret = 1 - 1 / best;
  tree.regret = 1 - tree.speedup / best;
  plan.rows = {plain, tree};
  plan.basis = tree.extrapolated ? PriceBasis::extrapolated : PriceBasis::measured;
  judge(plan, acceptance, cost);
  return plan;
}

void TreePlanner::judge(PointPlan& plan, const LogError& acceptance, const LogError& cost) const {
  const DeploymentRow &plain = plan.rows[0], &tree = plan.rows[1];
  const double enough = 1 + question_.min_gain;
  plan.optimal_row = tree.speedup > 1 ? 1 : 0;
  const DeploymentRow& best = *plan.optimal();
  plan.speedup_estimate.emplace();
  plan.speedup_estimate->value = best.speedup;
  plan.speedup_estimate->ci95 = best.speedup_ci95;
  plan.speedup_estimate->method = best.gamma == 0
                                      ? "plain decoding, 1 by definition"
                                      : "squares of the half-widths of ln(tokens per step) and of ln(cost) added";
  const double squares = acceptance.squares() + cost.squares();
  if (squares > 0) plan.interval_share = IntervalShare{acceptance.squares() / squares, cost.squares() / squares};
  for (const DeploymentRow& row : plan.rows)
    if (row.regret <= question_.tolerance) plan.near_optimal_gammas.push_back(row.gamma);
  const BaselineAndSpeculative seconds = {plain.time.total(), best.time.total() / best.tokens_per_step};
  plan.seconds_per_output_token = seconds;
  plan.output_tokens_per_second = {plan.batch / seconds.baseline, plan.batch / seconds.speculative};

  const bool decided = decides(plan.basis, question_.extrapolate) && draft_.cost->impossible().empty();
  if (decided && tree.speedup_ci95.lo >= enough) {
    plan.verdict = Verdict::speculate;
  } else if (decided && tree.speedup_ci95.hi < enough) {
    plan.verdict = Verdict::do_not_speculate;
  } else {
    plan.dominant_source = tree.extrapolated                        ? UncertaintySource::extrapolation
                           : acceptance.squares() >= cost.squares() ? UncertaintySource::acceptance
                                                                    : UncertaintySource::cost;
    const bool baseline = plan.dominant_source != UncertaintySource::acceptance;
    plan.next = NextMeasurement{draft_.tree.depth, plan.batch, plan.context, std::nullopt, baseline, draft_.tree};
  }
}

/// What the schedule does at one batch: at several contexts what loses least at the worst of them.
PlannedStretch stretch_at(const TreePlanner& planner, const TreeDraft& draft, std::int64_t batch,
                          const DeploymentQuestion& question, const ScheduleRule& rule, double& speedup) {
  PlannedStretch stretch{batch, batch, 0, PriceBasis::measured, Verdict::do_not_speculate};
  double most = 0;
  speedup = std::numeric_limits<double>::infinity();
  for (const double context : question.contexts) {
    const PointPlan point = planner.plan(priced_at(batch, rule), context);
    speedup = std::min(speedup, point.rows[1].speedup);
    most = std::max(most, point.rows[1].speedup);
    if (point.basis == PriceBasis::extrapolated) stretch.basis = point.basis;
    if (stretch.verdict != Verdict::speculate && point.verdict != Verdict::do_not_speculate)
      stretch.verdict = point.verdict;
  }
  if (most >= 1 + question.min_gain && most * speedup >= 1) stretch.gamma = draft.tree.depth;
  return stretch;
}

/// Covers the batches 1 to schedule_up_to; the fixed choice is the tree unless it loses more than plain decoding.
void add_schedule(const TreePlanner& planner, const TreeDraft& draft, std::span<const PlanPoint> points,
                  const DeploymentQuestion& question, DraftPlan& plan) {
  ScheduleRule rule{question.tolerance, question.prefer_measured, question.min_gain, false, question.extrapolate};
  for (const PlanPoint& point : points) rule.points.push_back(point.batch);
  FixedGamma tree{draft.tree.depth, 0, 1, std::numeric_limits<double>::infinity(), 1, 0}, plain{0, 0, 1, 1, 1, 0};
  bool any = false;
  for (std::int64_t batch = 1; batch <= *question.schedule_up_to; ++batch) {
    double speedup = 1;
    const PlannedStretch one = stretch_at(planner, draft, batch, question, rule, speedup);
    std::vector<PlannedStretch>& all = plan.schedule;
    const bool same = !all.empty() && all.back().gamma == one.gamma && all.back().basis == one.basis &&
                      all.back().verdict == one.verdict;
    if (!same) all.push_back(one);
    all.back().batch_high = batch;
    if (!decides(one.basis, question.extrapolate)) continue;
    any = true;
    const auto at = static_cast<double>(batch);
    const auto lose = [at](FixedGamma& fixed, double regret) {
      if (regret <= fixed.worst_regret) return;
      fixed.worst_regret = regret;
      fixed.worst_batch = at;
    };
    lose(tree, 1 - speedup);
    lose(plain, 1 - 1 / speedup);
    if (speedup < tree.least_speedup) {
      tree.least_speedup = speedup;
      tree.slowest_batch = at;
    }
    if (speedup < 1 && tree.slow_from == 0) tree.slow_from = at;
  }
  if (any) plan.fixed = tree.worst_regret <= plain.worst_regret ? tree : plain;
}

}  // namespace

std::string name_of(const cost::DraftTree& tree) {
  return fmt::format("tree {}-{}-{}", tree.depth, tree.top_k, tree.verified);
}

DraftPlan plan_tree(const TreeDraft& draft, std::span<const PlanPoint> points, const DeploymentQuestion& question) {
  const TreePlanner planner(draft, question);
  DraftPlan plan;
  plan.name = name_of(draft.tree);
  plan.tree = draft.tree;
  for (const PlanPoint& point : points) plan.points.push_back(planner.plan(point.batch, point.context));
  if (question.schedule_up_to) add_schedule(planner, draft, points, question, plan);
  return plan;
}

}  // namespace specdec::planning
