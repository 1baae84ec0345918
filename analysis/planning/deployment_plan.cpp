#include "analysis/planning/deployment_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/planning/draft_worlds.hpp"

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

/// Notes where points have fewer gammas than were to be compared, or were not timed.
void note_limits(const DraftWorlds& draft, const DeploymentQuestion& question, DraftPlan& plan) {
  const auto report = [&](std::string_view code, const auto& concerned, const auto& what) {
    const auto first = std::find_if(plan.points.begin(), plan.points.end(), concerned);
    if (first == plan.points.end()) return;
    plan.notes.push_back(
        {std::string(code), fmt::format("at {} of {} points, the first at batch {:g} and context {:g}, {}",
                                        std::count_if(plan.points.begin(), plan.points.end(), concerned),
                                        plan.points.size(), first->batch, first->context, what(*first))});
  };
  const cost::RoundCost& cost = *draft.draft().cost;
  if (!draft.limit().empty())
    plan.notes.push_back(
        {"gamma_not_known",
         fmt::format("gammas above {} are left out: {}", draft.options().gammas.back(), draft.limit())});
  const auto basis = [&](const PointPlan& point) { return cost.about(point.batch, point.context); };
  report("not_timed", [&](const PointPlan& point) { return !basis(point).empty(); }, basis);
  const auto is_at_limit = [&](const PointPlan& point) {
    return !draft.draft().tree && point.optimal().gamma == question.max_gamma;
  };
  report("optimum_at_limit", is_at_limit, [](const PointPlan& point) {
    return fmt::format("gamma {} is the largest one compared, and larger ones may be faster (--max-gamma)",
                       point.optimal().gamma);
  });
}

std::vector<PlanPoint> points_of(const DeploymentQuestion& question) {
  if (!question.points.empty()) return question.points;
  std::vector<PlanPoint> points;
  for (const double context : question.contexts) {
    for (const double batch : question.batches) points.push_back({batch, context});
  }
  return points;
}

/// Empty beyond the schedule, or without one.
std::optional<std::int64_t> scheduled_at(const DraftPlan& plan, double batch) {
  const auto whole = static_cast<std::int64_t>(whole_batch(batch));
  for (const PlannedStretch& stretch : plan.schedule)
    if (whole <= stretch.batch_high) return stretch.gamma;
  return std::nullopt;
}

DraftPlan plan_draft(const DraftWorlds& draft, const DeploymentQuestion& question) {
  DraftPlan plan;
  plan.name = draft.draft().name;
  plan.tree = draft.draft().tree;
  const std::vector<PlanPoint> points = points_of(question);
  plan.points.reserve(points.size());
  if (question.schedule_up_to) plan_schedule(draft, points, question, plan);
  for (const PlanPoint& point : points) {
    const auto deployed = draft.draft().tree ? std::nullopt : deployed_at(question, point.batch);
    plan.points.push_back(plan_point(draft, point, question, deployed, scheduled_at(plan, point.batch)));
  }
  note_limits(draft, question, plan);
  return plan;
}

/// Time per output token of the recommended gamma in every world: seconds if all drafts know them, else plain steps.
std::vector<double> slowness_in_worlds(const DraftWorlds& draft, const PointPlan& point, bool in_seconds) {
  const worlds::PricedWorlds priced = draft.price(point.batch, point.context);
  const std::vector<double>&rounds = priced.rounds.options[point.optimal_row], &plain = priced.rounds.options[0];
  std::vector<double> slowness = rounds;
  for (std::size_t world = 0; world < slowness.size(); ++world) {
    slowness[world] /= priced.tokens.options[point.optimal_row][world];
    if (!in_seconds) slowness[world] /= plain[world];
  }
  return slowness;
}

/// Drafts compared on common worlds: the one to take, and how sure it is.
class DraftChoice {
 public:
  DraftChoice(const DeploymentQuestion& question, const std::vector<DraftWorlds>& drafts, DeploymentPlan& plan)
      : question_(question), plan_(plan) {
    const bool in_seconds = std::all_of(drafts.begin(), drafts.end(),
                                        [](const DraftWorlds& one) { return one.draft().cost->in_seconds(); });
    for (std::size_t draft = 0; draft < drafts.size(); ++draft) {
      slowness_.emplace_back();
      for (const PointPlan& point : plan.drafts[draft].points)
        slowness_.back().push_back(slowness_in_worlds(drafts[draft], point, in_seconds));
    }
  }

  void choose();

 private:
  /// In the middle of the worlds; infinite for a draft that cannot be served beside one that can.
  double middle(std::size_t draft, std::size_t point) const;
  double share_faster(std::size_t draft, std::size_t other) const;

  const DeploymentQuestion& question_;
  DeploymentPlan& plan_;
  /// [draft][point][world]
  std::vector<std::vector<std::vector<double>>> slowness_;
};

double DraftChoice::middle(std::size_t draft, std::size_t point) const {
  const auto can_be_served = [](const DeploymentDraft& one) { return one.can_be_served; };
  const bool is_out = !question_.drafts[draft].can_be_served &&
                      std::any_of(question_.drafts.begin(), question_.drafts.end(), can_be_served);
  const std::vector<double>& its = slowness_[draft][point];
  if (is_out) return std::numeric_limits<double>::infinity();
  return worlds::spread_of(its, std::vector<int>(its.size(), 0)).middle;
}

/// Worlds of two drafts belong together by their number; a draft with one world is the same in all.
double DraftChoice::share_faster(std::size_t draft, std::size_t other) const {
  double least = 1;
  for (std::size_t point = 0; point < slowness_[draft].size(); ++point) {
    const std::vector<double>&its = slowness_[draft][point], &others = slowness_[other][point];
    const std::size_t worlds = std::max(its.size(), others.size());
    double faster = 0;
    for (std::size_t world = 0; world < worlds; ++world) {
      const double a = its[world % its.size()], b = others[world % others.size()];
      faster += a < b ? 1 : a == b ? 0.5 : 0;
    }
    least = std::min(least, faster / static_cast<double>(worlds));
  }
  return least;
}

void DraftChoice::choose() {
  const std::size_t drafts = slowness_.size(), points = slowness_.front().size();
  std::vector<double> worst(drafts), sum(drafts);
  bool pays_somewhere = false;
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> slow;
    for (std::size_t draft = 0; draft < drafts; ++draft) slow.push_back(middle(draft, point));
    const auto best = static_cast<std::size_t>(std::min_element(slow.begin(), slow.end()) - slow.begin());
    const bool pays = plan_.drafts[best].points[point].optimal_row > 0;
    pays_somewhere = pays_somewhere || pays;
    plan_.best_draft.push_back(pays ? std::optional(best) : std::nullopt);
    for (std::size_t draft = 0; draft < drafts; ++draft) {
      const double loss = 1 - slow[best] / slow[draft];
      worst[draft] = std::max(worst[draft], loss);
      sum[draft] += loss;
    }
  }
  if (!pays_somewhere) return;
  std::size_t recommended = 0;
  for (std::size_t draft = 1; draft < drafts; ++draft)
    if (std::pair(worst[draft], sum[draft]) < std::pair(worst[recommended], sum[recommended])) recommended = draft;
  plan_.recommended_draft = recommended;
  for (std::size_t draft = 0; draft < drafts; ++draft) plan_.share_better.push_back(share_faster(recommended, draft));
}

}  // namespace

DeploymentPlan plan_deployment(const DeploymentQuestion& question) {
  require_question(question);
  DeploymentPlan plan;
  std::vector<DraftWorlds> drafts;
  for (const DeploymentDraft& draft : question.drafts) {
    drafts.emplace_back(draft, question);
    plan.drafts.push_back(plan_draft(drafts.back(), question));
    for (const PointPlan& point : plan.drafts.back().points)
      if (point.deployed && point.deployed->exceeds_max_regret) plan.exceeds_max_regret = true;
  }
  DraftChoice(question, drafts, plan).choose();
  return plan;
}

std::string name_of(const cost::DraftTree& tree) {
  return fmt::format("tree {}-{}-{}", tree.depth, tree.top_k, tree.verified);
}

std::string_view name_of(PriceBasis basis) {
  constexpr std::array<std::string_view, 4> names = {"measured", "stated", "modelled", "extrapolated"};
  return names.at(static_cast<std::size_t>(basis));
}

}  // namespace specdec::planning
