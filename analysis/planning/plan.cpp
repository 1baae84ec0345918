#include "analysis/planning/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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
/// Up to this gamma the rows include all smaller ones.
constexpr std::int64_t dense_gamma = 20;
/// A finite generation takes time O(tokens gamma); above this product it is left out.
constexpr double finite_generation_work = 2e7;
/// The same for the recommended gamma alone.
constexpr double recommended_generation_work = 4e8;
/// Rejections below this one are the rounding of the numbers that were measured.
constexpr double least_measured_rejection = 1e-12;

/// The number of drafts that the acceptance was measured over.
std::optional<std::int64_t> measured_drafts(const PlanQuestion& q) {
  if (q.measured_at) return q.measured_at;
  if (q.acceptance.measured_positions() > 0) return q.acceptance.measured_positions();
  return std::nullopt;
}

void require_question(const PlanQuestion& q) {
  core::require_in("plan", "tolerance", q.tolerance, std::numeric_limits<double>::min(), 0.999);
  core::require_in("plan", "prefer_measured", q.prefer_measured, 0, 1 - 1e-9);
  if (q.measured_at) core::require_in("plan", "measured_at", *q.measured_at, 1, no_max_gamma);
  if (q.deployed) {
    core::require_in("plan", "deployed", *q.deployed, 0, std::min(q.space.max_gamma, largest_known_gamma(q)));
  }
  if (q.max_regret) core::require_in("plan", "max_regret", *q.max_regret, 0, 1);
  if (q.tokens) core::require_in("plan", "tokens", *q.tokens, 1, no_max_gamma);
}

bool has_papers_costs(const core::StepCost& cost) {
  const auto knots = cost.verification.points();
  return cost.overhead == 0 && cost.verification.last_slope() == 0 &&
         std::all_of(knots.begin(), knots.end(), [](const auto& knot) { return knot.factor == 1; });
}

/// Every gamma that the acceptance covers, including those above max_gamma: the reference of regrets.
SearchSpace all_gammas(const PlanQuestion& q) { return {q.space.cost, largest_known_gamma(q)}; }

PlanRow make_row(const PlanQuestion& q, std::int64_t gamma, double most_work = finite_generation_work) {
  PlanRow row{};
  row.gamma = gamma;
  row.expected_tokens = theory::expected_tokens(q.acceptance, gamma);
  row.speedup = theory::walltime_improvement(q.acceptance, gamma, q.space.cost);
  row.operations_factor = theory::operations_factor(q.acceptance, gamma, q.c_hat);
  row.memory_access_factor = theory::memory_access_factor(q.acceptance, gamma);
  row.extrapolated = below_measured(q, gamma) || beyond_measured(q, gamma) || q.space.cost.extrapolates(gamma);
  if (q.interval) row.worst_regret = worst_regret(*q.interval, gamma, all_gammas(q));
  if (q.tokens) {
    const double work = static_cast<double>(*q.tokens) * static_cast<double>(std::min(gamma, *q.tokens) + 1);
    if (work <= most_work) {
      const auto generation = theory::finite_generation(q.acceptance, gamma, *q.tokens, q.space.cost);
      row.finite_speedup = generation.speedup;
      row.finite_steps = generation.expected_steps;
    }
  }
  return row;
}

/// The rate of an oracle's step, which ends at the first rejection: 1 / (1 - rate) tokens.
core::AcceptanceRate oracle_rate(const core::AcceptanceProfile& acceptance) {
  if (acceptance.measured_positions() == 0) return acceptance.tail();
  return core::AcceptanceRate::from_rejection(1 / theory::expected_tokens_limit(acceptance));
}

/// The gammas that the answer mentions.
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

/// @param all  every gamma up to the bound, because that was requested
std::set<std::int64_t> shown_gammas(const PlanQuestion& q, const Plan& plan, bool all) {
  const std::set<std::int64_t> important = important_gammas(q, plan);
  std::int64_t dense_end = all ? plan.max_gamma : 8;
  for (const std::int64_t gamma : important) {
    if (!all && gamma <= dense_gamma) dense_end = std::max(dense_end, gamma + 4);
  }
  std::set<std::int64_t> shown;
  for (std::int64_t gamma = 0; gamma <= dense_end; ++gamma) shown.insert(gamma);
  const std::int64_t largest = *important.rbegin();
  if (largest > dense_end) {
    add_round_numbers(std::min(2 * largest, plan.max_gamma), shown);
    for (const std::int64_t gamma : important) shown.insert({std::max<std::int64_t>(gamma, 1) - 1, gamma, gamma + 1});
  }
  shown.erase(shown.upper_bound(plan.max_gamma), shown.end());
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
  interval.minimax = minimax_gamma(*q.interval, all_gammas(q), q.space.max_gamma);
  const theory::OptimalGamma most = best_gamma(q.interval->high, all_gammas(q));
  interval.best_lies_above = q.space.max_gamma < no_max_gamma && (!most.attained() || most.gamma > q.space.max_gamma);
  const auto best_at = [&](const core::AcceptanceRate& rate) {
    const theory::OptimalGamma best = best_gamma(rate, q.space);
    return best.attained() ? best.gamma : no_max_gamma;
  };
  interval.best_at_low = best_at(q.interval->low);
  interval.best_at_high = best_at(q.interval->high);
  interval.best = best_stretches(*q.interval, q.space, listed_stretches);
  interval.all_listed = interval.best.back().high == q.interval->high;
  return interval;
}

/// The smallest gamma whose speedup comes within the tolerance of its supremum at every rate in question; for an
/// interval the high end decides, where gamma loses most to larger ones.
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

/// The largest gamma that is not extrapolated; empty if there is none.
std::optional<std::int64_t> largest_measured_gamma(const PlanQuestion& q) {
  std::int64_t largest = measured_drafts(q).value_or(no_max_gamma);
  if (q.space.cost.extrapolates(largest)) largest = q.space.cost.verification.points().back().tokens - 1;
  return largest < no_max_gamma ? std::optional(largest) : std::nullopt;
}

/// The smallest speedup of one gamma over the readings.
double least_speedup_at(const PlanQuestion& q, std::int64_t gamma) {
  double least = std::numeric_limits<double>::infinity();
  for (const core::AcceptanceProfile& reading : q.readings)
    least = std::min(least, theory::walltime_improvement(reading, gamma, q.space.cost));
  return least;
}

/// The smallest speedup of the best gamma over the readings; of the supremum if none is attained.
double least_speedup_of(const PlanQuestion& q, const theory::OptimalGamma& best) {
  if (best.attained()) return std::min(best.speedup, least_speedup_at(q, best.gamma));
  double least = best.speedup;
  for (const core::AcceptanceProfile& reading : q.readings)
    least = std::min(least, best_gamma(reading, q.space).speedup);
  return least;
}

/// How far below the estimate the 95% interval of a gamma's tokens per step reaches, as a logarithm.
double sampling_error_at(const PlanQuestion& q, std::int64_t gamma) {
  double below = 0;
  const double speedup = theory::walltime_improvement(q.acceptance, gamma, q.space.cost);
  for (const core::AcceptanceProfile& end : q.ci95)
    below = std::max(below, std::log(speedup / theory::walltime_improvement(end, gamma, q.space.cost)));
  return below;
}

/// True if the gamma gains on the measured one by every reading, less the sampling error that they do not share.
bool surely_gains_on(const PlanQuestion& q, std::int64_t gamma, double least, const theory::OptimalGamma& measured) {
  const double further = further_error(sampling_error_at(q, gamma), sampling_error_at(q, measured.gamma));
  constexpr double nothing_asked_for = std::numeric_limits<double>::infinity();
  return surely_gains(least * std::exp(-further), measured.speedup, nothing_asked_for, q.prefer_measured);
}

/// The longest draft up to the best one, and so the fastest by the estimate, that surely gains on what was measured;
/// empty if the best of no reading does.
std::optional<std::int64_t> longest_sure_gamma(const PlanQuestion& q, const Plan& plan, std::int64_t longest,
                                               const theory::OptimalGamma& measured) {
  const auto is_sure = [&](std::int64_t gamma) {
    return gamma > longest && surely_gains_on(q, gamma, least_speedup_at(q, gamma), measured);
  };
  std::int64_t sure = 0;
  for (const core::AcceptanceProfile& reading : q.readings) {
    const theory::OptimalGamma best = best_gamma(reading, q.space);
    if (best.attained() && best.gamma > sure && is_sure(best.gamma)) sure = best.gamma;
  }
  if (sure == 0) return std::nullopt;
  std::int64_t unsure = plan.best.attained() ? plan.best.gamma : no_max_gamma;
  while (unsure - sure > 1) {
    const std::int64_t middle = std::midpoint(sure, unsure);
    (is_sure(middle) ? sure : unsure) = middle;
  }
  return sure;
}

/// If the best gamma lies beyond the longest measured one and surely gains too little: the best of those up to there,
/// or 0, and of those beyond that gain enough.
std::optional<Recommendation> surer_gamma(const PlanQuestion& q, const Plan& plan) {
  const std::optional<std::int64_t> measured = largest_measured_gamma(q);
  const bool lies_within = plan.best.attained() && measured && plan.best.gamma <= *measured;
  if (q.interval || !measured || lies_within || !std::isfinite(plan.best.speedup)) return std::nullopt;
  const theory::OptimalGamma best = best_gamma(q.acceptance, {q.space.cost, std::min(*measured, q.space.max_gamma)});
  const std::int64_t fastest = plan.best.attained() ? plan.best.gamma : best.gamma;
  if (surely_gains_on(q, fastest, plan.least_best_speedup, best)) return std::nullopt;
  if (const auto sure = longest_sure_gamma(q, plan, *measured, best)) return Recommendation{Basis::sure, sure};
  return Recommendation{best.gamma > 0 ? Basis::measured : Basis::not_worth_it, best.gamma};
}

Recommendation recommend(const PlanQuestion& q, const Plan& plan) {
  if (plan.interval && plan.interval->minimax.attained) {
    const bool pays = plan.interval->best_at_high > 0;
    return {pays ? Basis::minimax_regret : Basis::not_worth_it, plan.interval->minimax.gamma};
  }
  if (!plan.worth_it) return {Basis::not_worth_it, 0};
  if (const auto surer = surer_gamma(q, plan)) return *surer;
  if (!plan.best.attained()) {
    const std::optional<std::int64_t> gamma = share_gamma(q);
    return {gamma ? Basis::share_of_limit : Basis::none, gamma};
  }
  if (plan.best.gamma != plan.unrestricted.gamma) return {Basis::max_gamma, plan.best.gamma};
  return {largest_known_gamma(q) < no_max_gamma ? Basis::measured : Basis::optimum, plan.best.gamma};
}

/// The largest share of the other gamma's speedup by which one gamma falls behind it, over the readings and the ends of
/// the interval; at least 0.
double most_behind(const PlanQuestion& q, std::int64_t gamma, std::int64_t other) {
  std::vector<core::AcceptanceProfile> readings = q.readings;
  readings.push_back(q.acceptance);
  if (q.interval) readings.insert(readings.end(), {q.interval->low, q.interval->high});
  double most = 0;
  for (const core::AcceptanceProfile& reading : readings) {
    most = std::max(most, 1 - theory::walltime_improvement(reading, gamma, q.space.cost) /
                                  theory::walltime_improvement(reading, other, q.space.cost));
  }
  return most;
}

std::optional<FinitePlan> plan_finite(const PlanQuestion& q, const std::vector<PlanRow>& rows) {
  const PlanRow* best = nullptr;
  std::int64_t searched_up_to = 0;
  bool complete = true;
  for (const PlanRow& row : rows) {
    complete = complete && row.finite_speedup;
    if (complete) searched_up_to = row.gamma;
    if (row.finite_speedup && (best == nullptr || *row.finite_speedup > *best->finite_speedup)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return FinitePlan{*q.tokens, best->gamma, *best->finite_speedup, *best->finite_steps, searched_up_to, complete};
}

}  // namespace

DeployedGamma judge_deployed(const PlanQuestion& q, std::optional<std::int64_t> recommended) {
  DeployedGamma deployed{};
  deployed.gamma = *q.deployed;
  deployed.speedup = theory::walltime_improvement(q.acceptance, *q.deployed, q.space.cost);
  const SearchSpace all = all_gammas(q);
  deployed.regret = regret(q.acceptance, *q.deployed, all);
  if (q.interval) deployed.worst_regret = worst_regret(*q.interval, *q.deployed, all);
  deployed.behind_recommended = recommended ? most_behind(q, *q.deployed, *recommended)
                                            : std::max(deployed.regret, deployed.worst_regret.value_or(0));
  deployed.exceeds_max_regret = q.max_regret && deployed.behind_recommended > *q.max_regret;
  return deployed;
}

std::int64_t largest_known_gamma(const PlanQuestion& q) {
  const std::optional<std::int64_t> drafts = measured_drafts(q);
  const bool goes_on = q.monotone && q.acceptance.tail().rejection() >= least_measured_rejection;
  return drafts && !goes_on ? *drafts : no_max_gamma;
}

bool beyond_measured(const PlanQuestion& q, std::int64_t gamma) {
  const std::optional<std::int64_t> drafts = measured_drafts(q);
  return drafts && gamma > *drafts;
}

bool below_measured(const PlanQuestion& q, std::int64_t gamma) { return 0 < gamma && gamma < q.measured_from; }

Plan plan(const PlanQuestion& question) {
  require_question(question);
  const std::int64_t known = largest_known_gamma(question);
  PlanQuestion q = question;
  q.space.max_gamma = std::min(question.space.max_gamma, known);
  Plan plan{};
  plan.max_gamma = q.space.max_gamma;
  plan.best = best_gamma(q.acceptance, q.space);
  plan.unrestricted = best_gamma(q.acceptance, all_gammas(q));
  plan.least_best_speedup = least_speedup_of(q, plan.best);
  const theory::OptimalGamma most = q.interval ? best_gamma(q.interval->high, q.space) : plan.best;
  plan.worth_it = !most.attained() || most.gamma > 0;
  plan.break_even = theory::break_even_alpha(q.space.cost);
  plan.near_best = near_best_gammas(q.acceptance, q.space, q.tolerance);
  if (plan.best.attained()) plan.best_row = make_row(q, plan.best.gamma);
  if (plan.best.kind == theory::OptimumKind::unbounded && std::isfinite(plan.best.speedup))
    plan.shares_of_limit = shares_of_limit(q);
  if (has_papers_costs(q.space.cost) && known == no_max_gamma) {
    plan.oracle_speedup = theory::oracle_speedup(oracle_rate(q.acceptance), q.space.cost.c);
    if (q.acceptance.measured_positions() == 0 && plan.best.gamma == plan.unrestricted.gamma) {
      const auto real = theory::optimal_gamma_real(q.acceptance.tail(), q.space.cost.c);
      if (real) plan.gamma_real = real->gamma;
    }
  }
  if (q.interval) plan.interval = plan_interval(q);

  const Recommendation recommendation = recommend(q, plan);
  plan.basis = recommendation.basis;
  if (plan.basis == Basis::not_worth_it) plan.worth_it = false;
  if (recommendation.gamma) plan.recommended = make_row(q, *recommendation.gamma, recommended_generation_work);
  if (q.deployed) plan.deployed = judge_deployed(q, recommendation.gamma);
  for (const std::int64_t gamma : shown_gammas(q, plan, question.space.max_gamma < no_max_gamma)) {
    const bool recommended = plan.recommended && gamma == plan.recommended->gamma;
    plan.rows.push_back(recommended ? *plan.recommended : make_row(q, gamma));
  }
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
