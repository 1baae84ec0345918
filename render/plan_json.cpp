#include "planner/number_text.hpp"
#include "render/json_values.hpp"
#include "render/plan.hpp"

#include <string_view>

namespace specdec::render {
namespace {

using planner::Plan;

const planner::StatedAcceptance& stated_of_form(const Plan& a) { return *a.drafts.front().acceptance.stated; }

using nlohmann::ordered_json;

ordered_json gamma_or_null(std::int64_t gamma) {
  return gamma < planning::no_max_gamma ? ordered_json(gamma) : ordered_json();
}

void put_row_values(ordered_json& object, const planning::PlanRow& row) {
  put_number(object, "expected_tokens", row.expected_tokens);
  put_number(object, "speedup", row.speedup);
  put_number(object, "operations_factor", row.operations_factor);
  put_number(object, "memory_access_factor", row.memory_access_factor);
}

ordered_json json_row(const Plan& a, const planning::PlanRow& row) {
  ordered_json object = {{"gamma", row.gamma}};
  put_row_values(object, row);
  const auto interval = planner::speedup_interval(a.drafts.front().acceptance, row);
  object["speedup_interval"] = interval ? ordered_json({interval->lo, interval->hi}) : ordered_json();
  object["extrapolated"] = row.extrapolated;
  object["finite_speedup"] = number_or_null(row.finite_speedup);
  object["worst_regret"] = number_or_null(row.worst_regret);
  return object;
}

ordered_json json_optimal(const planning::Plan& plan) {
  ordered_json object = {{"gamma", plan.best_row ? ordered_json(plan.best_row->gamma) : ordered_json()},
                         {"gamma_real", number_or_null(plan.gamma_real)}};
  if (plan.best_row) {
    put_row_values(object, *plan.best_row);
  } else {
    for (const char* key : {"expected_tokens", "speedup", "operations_factor", "memory_access_factor"}) {
      object[key] = nullptr;
    }
  }
  return object;
}

std::string_view basis_name(planning::Basis basis) {
  switch (basis) {
    case planning::Basis::optimum:
      return "optimum";
    case planning::Basis::share_of_limit:
      return "share_of_limit";
    case planning::Basis::max_gamma:
      return "max_gamma";
    case planning::Basis::measured:
      return "measured";
    case planning::Basis::sure:
      return "sure";
    case planning::Basis::minimax_regret:
      return "minimax_regret";
    case planning::Basis::not_worth_it:
      return "not_worth_it";
    case planning::Basis::none:
      break;
  }
  return "none";
}

ordered_json json_limit(const planning::Plan& plan) {
  if (plan.best.kind != theory::OptimumKind::unbounded) return nullptr;
  ordered_json limit;
  put_number(limit, "speedup", plan.best.speedup);
  limit["shares"] = ordered_json::array();
  for (const auto& share : plan.shares_of_limit) {
    limit["shares"].push_back({{"share", share.share}, {"gamma", share.gamma}});
  }
  return limit;
}

/// The gammas of the ranges one by one, up to the listed maximum.
ordered_json json_gammas(const std::vector<theory::GammaRange>& ranges) {
  ordered_json gammas = ordered_json::array();
  for (const theory::GammaRange& range : ranges) {
    for (std::int64_t gamma = range.first; gamma <= range.last && std::ssize(gammas) < planner::listed_gammas;
         ++gamma) {
      gammas.push_back(gamma);
    }
  }
  return gammas;
}

ordered_json json_ranges(const std::vector<theory::GammaRange>& ranges) {
  ordered_json list = ordered_json::array();
  for (const theory::GammaRange& range : ranges) list.push_back({range.first, gamma_or_null(range.last)});
  return list;
}

ordered_json json_interval(const Plan& a) {
  if (!a.closed_form->plan.interval) return nullptr;
  const planning::IntervalPlan& interval = *a.closed_form->plan.interval;
  ordered_json stretches = ordered_json::array();
  for (const auto& stretch : interval.best) {
    stretches.push_back({{"gamma", gamma_or_null(stretch.gamma)},
                         {"alpha_interval", {stretch.low.alpha(), stretch.high.alpha()}},
                         {"rejection_interval", {stretch.high.rejection(), stretch.low.rejection()}}});
  }
  const bool attained = interval.minimax.attained;
  const planning::RateInterval& rates = *a.closed_form->question.interval;
  const core::AcceptanceRate &low = rates.low, &high = rates.high;
  return {{"alpha_interval",
           {planner::complement(low.rejection(), low.alpha()), planner::complement(high.rejection(), high.alpha())}},
          {"rejection_interval",
           {planner::complement(high.alpha(), high.rejection()), planner::complement(low.alpha(), low.rejection())}},
          {"gamma", gamma_or_null(interval.minimax.gamma)},
          {"worst_regret", attained ? ordered_json(interval.minimax.worst_regret) : ordered_json()},
          {"optimal_from", gamma_or_null(interval.best_at_low)},
          {"optimal_to", gamma_or_null(interval.best_at_high)},
          {"optimal_gammas", stretches}};
}

ordered_json json_finite(const planning::Plan& plan) {
  if (!plan.finite) return nullptr;
  return {{"tokens", plan.finite->tokens},
          {"gamma", plan.finite->gamma},
          {"speedup", plan.finite->speedup},
          {"expected_steps", plan.finite->expected_steps},
          {"searched_up_to", plan.finite->searched_up_to},
          {"complete", plan.finite->complete}};
}

ordered_json json_deployed(const planning::Plan& plan) {
  if (!plan.deployed) return nullptr;
  return {{"gamma", plan.deployed->gamma},
          {"speedup", plan.deployed->speedup},
          {"regret", plan.deployed->regret},
          {"worst_regret", number_or_null(plan.deployed->worst_regret)},
          {"behind_recommended", plan.deployed->behind_recommended}};
}

}  // namespace

ordered_json closed_form_json(const Plan& a) {
  const planning::Plan& plan = a.closed_form->plan;
  const core::AcceptanceRate rate = stated_of_form(a).rate();
  ordered_json json = {{"alpha", planner::complement(rate.rejection(), rate.alpha())},
                       {"rejection", planner::complement(rate.alpha(), rate.rejection())},
                       {"c", a.closed_form->question.space.cost.c},
                       {"c_hat", a.closed_form->question.c_hat},
                       {"worth_it", plan.worth_it}};
  json["break_even_alpha"] = plan.break_even ? ordered_json(plan.break_even->alpha()) : ordered_json();
  json["optimal"] = json_optimal(plan);
  const bool refused = a.has_points() && a.points().front().verdict == planning::Verdict::do_not_speculate;
  json["recommended"] = {{"gamma", plan.recommended ? ordered_json(plan.recommended->gamma) : ordered_json()},
                         {"basis", basis_name(plan.basis)}};
  if (const planning::DeploymentRow* const sure = a.sure_row())
    json["recommended"] = {{"gamma", sure->gamma}, {"basis", "sure"}};
  if (refused) json["recommended"] = {{"gamma", 0}, {"basis", basis_name(planning::Basis::not_worth_it)}};
  json["oracle_speedup"] = number_or_null(plan.oracle_speedup);
  json["near_optimal_gammas"] = json_gammas(plan.near_best);
  json["near_optimal_ranges"] = json_ranges(plan.near_best);
  json["limit"] = json_limit(plan);
  json["deployed"] = json_deployed(plan);
  json["interval"] = json_interval(a);
  json["finite"] = json_finite(plan);
  ordered_json& rows = json["rows"] = ordered_json::array();
  for (const planning::PlanRow& row : plan.rows) rows.push_back(json_row(a, row));
  return json;
}

}  // namespace specdec::render
