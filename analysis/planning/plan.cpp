#include "analysis/planning/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/core/checks.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/oracle.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

constexpr std::size_t listed_stretches = 100;
/// Gammas up to this one bring all their predecessors into the rows.
constexpr std::int64_t dense_gamma = 20;
/// A finite generation takes time O(tokens gamma); above this product it is left out.
constexpr double finite_generation_work = 2e7;

void require_question(const PlanQuestion& q) {
  core::require_in("plan", "tolerance", q.tolerance, std::numeric_limits<double>::min(), 0.999);
  if (q.deployed) core::require_in("plan", "deployed", *q.deployed, 0, q.space.max_gamma);
  if (q.tokens) core::require_in("plan", "tokens", *q.tokens, 1, no_max_gamma);
}

bool has_papers_costs(const core::StepCost& cost) {
  const auto knots = cost.verification.points();
  return cost.overhead == 0 && cost.verification.last_slope() == 0 &&
         std::all_of(knots.begin(), knots.end(), [](const auto& knot) { return knot.factor == 1; });
}

PlanRow make_row(const PlanQuestion& q, std::int64_t gamma) {
  PlanRow row{};
  row.gamma = gamma;
  row.expected_tokens = theory::expected_tokens(q.acceptance, gamma);
  row.speedup = theory::walltime_improvement(q.acceptance, gamma, q.space.cost);
  row.operations_factor = theory::operations_factor(q.acceptance, gamma, q.c_hat);
  row.memory_access_factor = theory::memory_access_factor(q.acceptance, gamma);
  row.extrapolated = q.acceptance.extrapolates(gamma) || q.space.cost.extrapolates(gamma);
  if (q.interval) row.worst_regret = worst_regret(*q.interval, gamma, q.space);
  if (q.tokens) {
    const double work = static_cast<double>(*q.tokens) * static_cast<double>(std::min(gamma, *q.tokens) + 1);
    if (work <= finite_generation_work) {
      row.finite_speedup = theory::finite_generation(q.acceptance, gamma, *q.tokens, q.space.cost).speedup;
    }
  }
  return row;
}

/// The rate of an oracle's step, which ends at the first rejection: 1 / (1 - rate) tokens.
core::AcceptanceRate oracle_rate(const core::AcceptanceProfile& acceptance) {
  if (acceptance.measured_positions() == 0) return acceptance.tail();
  return core::AcceptanceRate::from_rejection(1 / theory::expected_tokens_limit(acceptance));
}

/// The gammas that the answer speaks of.
std::set<std::int64_t> important_gammas(const PlanQuestion& q, const Plan& plan) {
  std::set<std::int64_t> important = {0};
  if (plan.recommended) important.insert(plan.recommended->gamma);
  if (plan.best.attained()) important.insert(plan.best.gamma);
  if (q.deployed) important.insert(*q.deployed);
  for (const theory::GammaRange& range : plan.near_best) {
    important.insert(range.first);
    if (range.last != theory::GammaRange::unbounded) important.insert(range.last);
  }
  for (const ShareOfLimit& share : plan.shares_of_limit) important.insert(share.gamma);
  if (plan.interval) {
    for (const std::int64_t gamma : {plan.interval->best_at_low, plan.interval->best_at_high}) {
      if (gamma < no_max_gamma) important.insert(gamma);
    }
  }
  return important;
}

/// Adds 1, 2, 5, 10, 20, 50, ... up to `bound`.
void add_round_numbers(std::int64_t bound, std::set<std::int64_t>& gammas) {
  for (std::int64_t ten = 1; ten <= bound; ten *= 10) {
    for (const std::int64_t gamma : {ten, 2 * ten, 5 * ten}) {
      if (gamma <= bound) gammas.insert(gamma);
    }
  }
}

std::set<std::int64_t> shown_gammas(const PlanQuestion& q, const Plan& plan) {
  const std::set<std::int64_t> important = important_gammas(q, plan);
  const bool all = q.space.max_gamma < no_max_gamma;
  std::int64_t dense_end = all ? q.space.max_gamma : 8;
  for (const std::int64_t gamma : important) {
    if (!all && gamma <= dense_gamma) dense_end = std::max(dense_end, gamma + 4);
  }
  std::set<std::int64_t> shown;
  for (std::int64_t gamma = 0; gamma <= dense_end; ++gamma) shown.insert(gamma);
  const std::int64_t largest = *important.rbegin();
  if (largest <= dense_end) return shown;
  add_round_numbers(std::min(2 * largest, no_max_gamma), shown);
  for (const std::int64_t gamma : important) shown.insert({std::max<std::int64_t>(gamma, 1) - 1, gamma, gamma + 1});
  return shown;
}

std::vector<ShareOfLimit> shares_of_limit(const PlanQuestion& q) {
  std::vector<ShareOfLimit> shares;
  for (const double share : {0.95, 0.99}) {
    const auto ranges = near_best_gammas(q.acceptance, q.space, 1 - share);
    if (!ranges.empty()) shares.push_back({share, ranges.back().first});
  }
  return shares;
}

IntervalPlan plan_interval(const PlanQuestion& q) {
  IntervalPlan interval{};
  interval.minimax = minimax_gamma(*q.interval, q.space);
  const auto best_at = [&](const core::AcceptanceRate& rate) {
    const theory::OptimalGamma best = best_gamma(rate, q.space);
    return best.attained() ? best.gamma : no_max_gamma;
  };
  interval.best_at_low = best_at(q.interval->low);
  interval.best_at_high = best_at(q.interval->high);
  interval.best = best_stretches(*q.interval, q.space, listed_stretches);
  interval.all_listed = interval.best.back().alpha_high == q.interval->high.alpha();
  return interval;
}

/// The smallest gamma whose speedup comes within the tolerance of its supremum at every rate in question; for an
/// interval the high end decides, where gamma has most to lose to larger ones.
std::optional<std::int64_t> share_gamma(const PlanQuestion& q) {
  const core::AcceptanceProfile acceptance = q.interval ? q.interval->high : q.acceptance;
  const theory::OptimalGamma best = best_gamma(acceptance, q.space);
  if (std::isinf(best.speedup)) return std::nullopt;
  const auto ranges = near_best_gammas(acceptance, q.space, q.tolerance);
  if (ranges.empty()) return std::nullopt;
  return ranges.back().first;
}

struct Recommendation {
  Basis basis;
  std::optional<std::int64_t> gamma;
};

Recommendation recommend(const PlanQuestion& q, const Plan& plan) {
  if (plan.interval && plan.interval->minimax.attained) {
    const bool pays = plan.interval->best_at_high > 0;
    return {pays ? Basis::minimax_regret : Basis::not_worth_it, plan.interval->minimax.gamma};
  }
  if (!plan.worth_it) return {Basis::not_worth_it, 0};
  if (!plan.best.attained()) {
    const std::optional<std::int64_t> gamma = share_gamma(q);
    return {gamma ? Basis::share_of_limit : Basis::none, gamma};
  }
  const bool restricted = plan.best.gamma != plan.unrestricted.gamma;
  return {restricted ? Basis::max_gamma : Basis::optimum, plan.best.gamma};
}

DeployedGamma judge_deployed(const PlanQuestion& q) {
  DeployedGamma deployed{};
  deployed.gamma = *q.deployed;
  deployed.speedup = theory::walltime_improvement(q.acceptance, *q.deployed, q.space.cost);
  deployed.regret = regret(q.acceptance, *q.deployed, q.space);
  if (q.interval) deployed.worst_regret = worst_regret(*q.interval, *q.deployed, q.space);
  return deployed;
}

std::optional<FinitePlan> plan_finite(const PlanQuestion& q, const std::vector<PlanRow>& rows) {
  const PlanRow* best = nullptr;
  std::int64_t searched_up_to = 0;
  for (const PlanRow& row : rows) {
    if (!row.finite_speedup) continue;
    if (best == nullptr || *row.finite_speedup > *best->finite_speedup) best = &row;
    searched_up_to = row.gamma;
  }
  if (best == nullptr) return std::nullopt;
  const auto generation = theory::finite_generation(q.acceptance, best->gamma, *q.tokens, q.space.cost);
  return FinitePlan{*q.tokens, best->gamma, generation.speedup, generation.expected_steps, searched_up_to};
}

}  // namespace

Plan plan(const PlanQuestion& q) {
  require_question(q);
  Plan plan{};
  plan.best = best_gamma(q.acceptance, q.space);
  plan.unrestricted = theory::optimal_gamma(q.acceptance, q.space.cost);
  plan.worth_it = !plan.best.attained() || plan.best.gamma > 0;
  plan.break_even = theory::break_even_alpha(q.space.cost);
  plan.near_best = near_best_gammas(q.acceptance, q.space, q.tolerance);
  if (plan.best.attained()) plan.best_row = make_row(q, plan.best.gamma);
  if (!plan.best.attained() && std::isfinite(plan.best.speedup)) plan.shares_of_limit = shares_of_limit(q);
  if (has_papers_costs(q.space.cost)) {
    plan.oracle_speedup = theory::oracle_speedup(oracle_rate(q.acceptance), q.space.cost.c);
    if (q.acceptance.measured_positions() == 0) {
      const auto real = theory::optimal_gamma_real(q.acceptance.tail(), q.space.cost.c);
      if (real) plan.gamma_real = real->gamma;
    }
  }
  if (q.interval) plan.interval = plan_interval(q);

  const Recommendation recommendation = recommend(q, plan);
  plan.basis = recommendation.basis;
  if (recommendation.gamma) plan.recommended = make_row(q, *recommendation.gamma);
  if (q.deployed) plan.deployed = judge_deployed(q);
  for (const std::int64_t gamma : shown_gammas(q, plan)) plan.rows.push_back(make_row(q, gamma));
  if (q.tokens) plan.finite = plan_finite(q, plan.rows);
  return plan;
}

core::AcceptanceRate pooled_rate(const core::AcceptanceProfile& acceptance) {
  const std::int64_t positions = acceptance.measured_positions();
  if (positions == 0) return acceptance.tail();
  const double accepted = theory::expected_tokens(acceptance, positions) - 1;
  return core::AcceptanceRate(std::min(1.0, accepted / theory::expected_tokens(acceptance, positions - 1)));
}

}  // namespace specdec::planning
