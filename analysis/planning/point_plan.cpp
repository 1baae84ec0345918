#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/planning/draft_worlds.hpp"

namespace specdec::planning {
namespace {

using worlds::PricedWorlds;
using worlds::Spread;
using worlds::Table;

std::optional<estimate::Interval> bounds_of(const Spread& spread) {
  return spread.middles.lo < spread.middles.hi ? std::optional(spread.middles) : std::nullopt;
}

DeploymentRow row_of(const DraftWorlds& draft, const PricedWorlds& priced, std::size_t option, const PlanPoint& at,
                     double min_gain) {
  DeploymentRow row;
  row.gamma = draft.options().gammas[option];
  row.time = draft.draft().cost->round(draft.point(option, at.batch, at.context));
  const std::vector<int>& alternative = priced.speedups.alternative;
  const Spread tokens = worlds::spread_of(priced.tokens.options[option], alternative);
  row.tokens_per_step = tokens.middle;
  row.tokens_interval = tokens.ci95;
  row.tokens_bounds = bounds_of(tokens);
  const std::vector<double>& speedups = priced.speedups.options[option];
  const Spread speedup = worlds::spread_of(speedups, alternative);
  row.speedup = speedup.middle;
  row.speedup_ci95 = speedup.ci95;
  row.speedup_bounds = bounds_of(speedup);
  row.share = option == 0 ? 0 : worlds::share_at_least(speedups, alternative, 1 + min_gain);
  return row;
}

/// A table in which every world has the middle of the options' figures.
Table at_middle(const Table& table) {
  Table middle = table;
  for (std::vector<double>& option : middle.options)
    std::fill(option.begin(), option.end(), worlds::spread_of(option, table.alternative).middle);
  return middle;
}

Table speedups_of(const Table& tokens, const Table& rounds) {
  Table speedups = tokens;
  for (std::size_t option = 0; option < tokens.options.size(); ++option) {
    for (std::size_t world = 0; world < tokens.worlds(); ++world) {
      speedups.options[option][world] *= rounds.options[0][world] / rounds.options[option][world];
    }
  }
  return speedups;
}

double least_regret(const Table& speedups, double min_gain) {
  const std::vector<double> regrets = worlds::regrets_of(speedups, min_gain);
  return *std::min_element(regrets.begin(), regrets.end());
}

Uncertainty uncertainty_of(const PricedWorlds& priced, double regret, double min_gain) {
  if (regret == 0) return {};
  Table relative = priced.rounds;
  for (std::vector<double>& option : relative.options)
    for (std::size_t world = 0; world < option.size(); ++world) option[world] /= priced.rounds.options[0][world];
  return {regret, least_regret(speedups_of(at_middle(priced.tokens), relative), min_gain),
          least_regret(speedups_of(priced.tokens, at_middle(relative)), min_gain)};
}

void take_choice(const DraftWorlds& draft, const PricedWorlds& priced, const DeploymentQuestion& question,
                 std::optional<std::int64_t> scheduled, PointPlan& plan) {
  worlds::Choice choice =
      worlds::choose(priced.speedups, {question.min_gain, draft.measured(plan.batch, plan.context, plan.rows.size())});
  if (const std::size_t option = scheduled ? draft.find(*scheduled) : choice.option; option < plan.rows.size())
    choice.take(option, priced.speedups, question.min_gain);
  plan.optimal_row = choice.option;
  plan.drafting_row = choice.drafting;
  const std::string impossible = draft.draft().cost->impossible();
  plan.doubt = impossible.empty() ? draft.draft().acceptance->refused() : impossible;
  plan.certainty = plan.doubt.empty() ? choice.certainty() : worlds::Certainty::open;
  plan.share = plan.doubt.empty() ? choice.share : 0.5;
  const double least = *std::min_element(choice.regrets.begin(), choice.regrets.end());
  for (std::size_t option = 0; option < plan.rows.size(); ++option) {
    plan.rows[option].regret = choice.regrets[option];
    if (choice.regrets[option] <= least + worlds::alike_regrets)
      plan.near_optimal_gammas.push_back(plan.rows[option].gamma);
  }
  plan.uncertainty = uncertainty_of(priced, choice.regret(), question.min_gain);
}

/// The run of the best draft, and of plain decoding where the cost leaves more open than the acceptance.
std::optional<NextMeasurement> next_of(const DraftWorlds& draft, const PointPlan& plan) {
  const Uncertainty& left = plan.uncertainty;
  if (left.regret < regret_that_matters || plan.drafting_row == 0 || !draft.draft().acceptance->refused().empty())
    return std::nullopt;
  return NextMeasurement{plan.rows[plan.drafting_row].gamma, plan.batch, plan.context,
                         left.with_cost_known < left.with_acceptance_known, draft.draft().tree};
}

std::string method_of(const Table& speedups, const DeploymentRow& best) {
  if (best.gamma == 0) return "plain decoding, 1 by definition";
  if (speedups.worlds() == 1) return "acceptance and cost taken as exact";
  return fmt::format("median and central 95% of {} worlds", speedups.worlds());
}

void describe_optimum(const DraftWorlds& draft, const PricedWorlds& priced, PointPlan& plan) {
  const DeploymentRow& best = plan.optimal();
  plan.speedup_estimate = {best.speedup, best.speedup_ci95, method_of(priced.speedups, best)};
  if (!draft.draft().cost->in_seconds()) return;
  const double plain = plan.rows[0].time.total();
  const BaselineAndSpeculative each = {plain, plain / best.speedup};
  plan.seconds_per_output_token = each;
  plan.output_tokens_per_second = {plan.batch / each.baseline, plan.batch / each.speculative};
}

/// c and the verify factor, and what acceptance any gain needs.
void describe_costs(const DraftWorlds& draft, PointPlan& plan) {
  const cost::RoundCost& cost = *draft.draft().cost;
  if (!draft.draft().tree) plan.break_even_alpha = break_even_alpha(cost, plan.batch, plan.context, plan.rows.size());
  const double plain = plan.rows[0].time.total();
  if (plan.rows.size() < 2 || !(plan.rows[0].time.target > 0)) return;
  const std::size_t shown = std::max<std::size_t>(1, plan.optimal_row);
  if (!cost.parts_known(draft.point(shown, plan.batch, plan.context))) return;
  const DeploymentRow& row = plan.rows[shown];
  const double passes = cost::draft_passes(cost.kind(), static_cast<double>(row.gamma));
  plan.c = passes == 0 ? 0 : row.time.draft / (passes * plain);
  plan.verify_factor = row.time.target / plan.rows[0].time.target;
}

void judge_deployed(const DraftWorlds& draft, const PricedWorlds& priced, const DeploymentQuestion& question,
                    std::int64_t gamma, PointPlan& plan) {
  const std::size_t used = draft.find(gamma);
  if (used >= plan.rows.size()) {
    // Throws with the reason why there is no such row.
    static_cast<void>(draft.draft().acceptance->tokens_per_step(gamma));
    throw std::domain_error("plan_deployment: the acceptance of a gamma between 0 and that in use is not known");
  }
  const std::vector<double>&of_used = priced.speedups.options[used],
                            &of_best = priced.speedups.options[plan.optimal_row];
  std::vector<double> over(of_used.size());
  for (std::size_t world = 0; world < over.size(); ++world) over[world] = of_best[world] / of_used[world];
  const std::vector<int>& alternative = priced.speedups.alternative;
  DeployedAtPoint deployed;
  deployed.gamma = gamma;
  deployed.speedup = plan.rows[used].speedup;
  deployed.regret = plan.rows[used].regret;
  deployed.behind_recommended = std::max(0.0, 1 - 1 / worlds::spread_of(over, alternative).middles.hi);
  deployed.share_over = worlds::share_at_least(over, alternative, 1 + question.min_gain);
  deployed.exceeds_max_regret = question.max_regret && deployed.behind_recommended > *question.max_regret;
  plan.deployed = deployed;
}

}  // namespace

PointPlan plan_point(const DraftWorlds& draft, const PlanPoint& at, const DeploymentQuestion& question,
                     std::optional<std::int64_t> deployed, std::optional<std::int64_t> scheduled) {
  PointPlan plan;
  plan.batch = at.batch;
  plan.context = at.context;
  const PricedWorlds priced = draft.price(at.batch, at.context);
  plan.basis = draft.basis(at.batch, at.context);
  const std::size_t options = priced.speedups.options.size();
  const std::vector<bool> measured = draft.measured(at.batch, at.context, options);
  for (std::size_t option = 0; option < options; ++option) {
    plan.rows.push_back(row_of(draft, priced, option, at, question.min_gain));
    plan.rows.back().extrapolated = !measured[option];
  }
  take_choice(draft, priced, question, scheduled, plan);
  plan.next = next_of(draft, plan);
  describe_optimum(draft, priced, plan);
  describe_costs(draft, plan);
  if (deployed) judge_deployed(draft, priced, question, *deployed, plan);
  return plan;
}

}  // namespace specdec::planning
