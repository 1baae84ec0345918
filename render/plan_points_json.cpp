#include "planner/benchmark_command.hpp"
#include "planner/number_text.hpp"
#include "render/json_values.hpp"
#include "render/plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace specdec::render {
namespace {

using planner::Plan;

using nlohmann::ordered_json;
using planning::DeploymentRow;
using planning::PointPlan;

ordered_json json_of(const estimate::Interval& interval) { return {interval.lo, interval.hi}; }

ordered_json json_of(const std::optional<estimate::Interval>& bounds) {
  return bounds ? json_of(*bounds) : ordered_json();
}

ordered_json json_of(const estimate::Estimate& estimate) {
  return {{"value", estimate.value},
          {"ci95", estimate.ci95 ? json_of(*estimate.ci95) : ordered_json()},
          {"method", estimate.method}};
}

/// An unknown value has the same keys.
ordered_json json_of(const std::optional<estimate::Estimate>& estimate) {
  if (estimate) return json_of(*estimate);
  return {{"value", nullptr}, {"ci95", nullptr}, {"method", "not priced"}};
}

ordered_json json_of(const std::optional<planning::BaselineAndSpeculative>& both) {
  if (!both) return nullptr;
  return {{"baseline", both->baseline}, {"speculative", both->speculative}};
}

/// Seconds if the cost knows them and the split into parts, null otherwise.
void put_times(ordered_json& object, const Plan& d, const PointPlan& point, const DeploymentRow& row) {
  const bool parts = d.cost().parts_known({row.gamma, point.batch, point.context});
  const double step = point.rows.front().time.total();
  const auto put = [&](const char* seconds_key, const char* steps_key, double time, bool known) {
    object[seconds_key] = d.in_seconds && known ? ordered_json(time) : ordered_json();
    object[steps_key] = known && step > 0 ? ordered_json(time / step) : ordered_json();
  };
  put("target_seconds", "target_steps", row.time.target, parts);
  put("draft_seconds", "draft_steps", row.time.draft, parts);
  put("overhead_seconds", "overhead_steps", row.time.overhead, parts);
  put("round_seconds", "round_steps", row.time.total(), true);
}

ordered_json json_of(const Plan& d, const PointPlan& point, const DeploymentRow& row) {
  ordered_json object = {{"gamma", row.gamma},
                         {"tokens_per_step", row.tokens_per_step},
                         {"tokens_per_step_interval", json_of(row.tokens_interval)},
                         {"tokens_per_step_bounds", json_of(row.tokens_bracket)}};
  put_times(object, d, point, row);
  object["speedup"] = row.speedup;
  object["speedup_ci95"] = json_of(row.speedup_ci95);
  object["speedup_bounds"] = json_of(row.speedup_bracket);
  object["regret"] = point.optimal_row ? ordered_json(row.regret) : ordered_json();
  object["extrapolated"] = row.extrapolated;
  object["bound"] = or_null(bound_of(d, point, row.gamma));
  return object;
}

ordered_json json_of(const std::optional<cost::DraftTree>& tree) {
  if (!tree) return nullptr;
  return {{"depth", tree->depth}, {"topk", tree->top_k}, {"verified_tokens", tree->verified}};
}

ordered_json json_of(const Plan& d, const std::optional<planning::NextMeasurement>& next) {
  if (!next) return nullptr;
  return {{"gamma", next->gamma},
          {"tree", json_of(next->tree)},
          {"batch", next->batch},
          {"context", next->context},
          {"requests", or_null(next->requests)},
          {"with_baseline", next->with_baseline},
          {"command", planner::benchmark_command(d, *next)}};
}

ordered_json json_of(const std::optional<planning::DeployedAtPoint>& deployed) {
  if (!deployed) return nullptr;
  return {{"gamma", deployed->gamma},
          {"speedup", deployed->speedup},
          {"regret", deployed->regret},
          {"worst_regret", deployed->worst_regret},
          {"behind_recommended", deployed->behind_recommended}};
}

/// The recommended gamma of a point, with the keys of the closed form's `optimal`.
ordered_json json_optimal(const PointPlan& point) {
  if (!point.optimal_row) {
    return {{"gamma", nullptr},   {"gamma_real", nullptr},        {"expected_tokens", nullptr},
            {"speedup", nullptr}, {"operations_factor", nullptr}, {"memory_access_factor", nullptr}};
  }
  const DeploymentRow& best = *point.optimal();
  return {
      {"gamma", best.gamma},     {"gamma_real", nullptr},        {"expected_tokens", best.tokens_per_step},
      {"speedup", best.speedup}, {"operations_factor", nullptr}, {"memory_access_factor", 1 / best.tokens_per_step}};
}

std::optional<planning::Verdict> verdict_at_design_effect_3(const Plan& d, std::size_t point) {
  if (!d.at_design_effect_3) return std::nullopt;
  return d.at_design_effect_3->drafts[d.shown()].points[point].verdict;
}

ordered_json json_point(const Plan& d, std::size_t index) {
  const PointPlan& point = d.points()[index];
  ordered_json object = {{"batch", point.batch},
                         {"context", point.context},
                         {"verdict", name_of(point.verdict)},
                         {"basis", name_of(point.basis)}};
  const auto wider = verdict_at_design_effect_3(d, index);
  object["verdict_at_design_effect_3"] = wider ? ordered_json(name_of(*wider)) : ordered_json();
  object["dominant_source"] = point.dominant_source ? ordered_json(name_of(*point.dominant_source)) : ordered_json();
  object["next_measurement"] = json_of(d, point.next);
  object["optimal"] = json_optimal(point);
  object["optimal"]["speedup_estimate"] = json_of(point.speedup_estimate);
  object["passed_over_gamma"] = nullptr;
  if (point.passed_over_row) object["passed_over_gamma"] = point.rows[*point.passed_over_row].gamma;
  object["unsure_gamma"] = nullptr;
  if (point.unsure_row) object["unsure_gamma"] = point.rows[*point.unsure_row].gamma;
  object["interval_share"] = nullptr;
  if (point.interval_share) {
    object["interval_share"] = {{"acceptance", point.interval_share->acceptance}, {"cost", point.interval_share->cost}};
  }
  object["worst_regret"] = point.optimal_row ? ordered_json(point.worst_regret) : ordered_json();
  object["near_optimal_gammas"] = point.near_optimal_gammas;
  object["gamma_bounds"] = nullptr;
  if (const auto best = best_at_ends(point))
    object["gamma_bounds"] = {std::min(best->first->gamma, best->second->gamma),
                              std::max(best->first->gamma, best->second->gamma)};
  object["at_limit"] = point.at_limit;
  object["seconds_per_output_token"] = json_of(point.seconds_per_output_token);
  object["output_tokens_per_second"] = json_of(point.output_tokens_per_second);
  object["c"] = number_or_null(point.c);
  object["verify_factor"] = number_or_null(point.verify_factor);
  object["break_even_alpha"] = number_or_null(point.break_even_alpha);
  object["break_even_c"] = nullptr;
  if (point.break_even_cost) {
    object["break_even_c"] = {{"c", point.break_even_cost->c}, {"gamma", point.break_even_cost->gamma}};
  }
  object["deployed"] = json_of(point.deployed);
  ordered_json& rows = object["rows"] = ordered_json::array();
  for (const DeploymentRow& row : point.rows) rows.push_back(json_of(d, point, row));
  return object;
}

ordered_json json_points(const Plan& d) {
  ordered_json points = ordered_json::array();
  for (std::size_t i = 0; i < d.points().size(); ++i) points.push_back(json_point(d, i));
  return points;
}

ordered_json json_of(const std::vector<planning::PlannedStretch>& schedule) {
  ordered_json list = ordered_json::array();
  for (const planning::PlannedStretch& stretch : schedule) {
    list.push_back({{"batch_low", stretch.batch_low},
                    {"batch_high", stretch.batch_high},
                    {"gamma", or_null(stretch.gamma)},
                    {"held", false},
                    {"basis", name_of(stretch.basis)},
                    {"verdict", name_of(stretch.verdict)}});
  }
  return list;
}

ordered_json json_of(const std::optional<planning::CrossoverBounds>& bounds) {
  if (!bounds) return nullptr;
  return {bounds->low, or_null(bounds->high)};
}

ordered_json json_of(const std::vector<planning::ScheduleStretch>& runs) {
  ordered_json list = ordered_json::array();
  for (const planning::ScheduleStretch& stretch : runs) {
    list.push_back({{"batch_low", stretch.batch_low},
                    {"batch_high", stretch.batch_high},
                    {"gamma", stretch.gamma},
                    {"held", stretch.held}});
  }
  return list;
}

ordered_json json_drafts(const Plan& d) {
  ordered_json drafts = ordered_json::array();
  for (std::size_t i = 0; i < d.deployment.drafts.size(); ++i) {
    const planning::DraftPlan& draft = d.deployment.drafts[i];
    ordered_json points = ordered_json::array();
    for (std::size_t j = 0; j < draft.points.size(); ++j) {
      const PointPlan& point = draft.points[j];
      points.push_back({{"batch", point.batch},
                        {"context", point.context},
                        {"verdict", name_of(point.verdict)},
                        {"gamma", point.optimal_row ? ordered_json(point.optimal()->gamma) : ordered_json()},
                        {"speedup_estimate", json_of(point.speedup_estimate)},
                        {"best", d.deployment.best_draft[j] == i}});
    }
    ordered_json acceptance;
    if (!d.drafts.empty()) {
      const planner::Acceptance& its = d.drafts[i].acceptance;
      acceptance = {{"source", its.text},
                    {"alpha", number_or_null(its.alpha)},
                    {"method", its.method},
                    {"clusters", or_null(its.clusters)},
                    {"rule", its.rule ? ordered_json(traces::name_of(*its.rule)) : ordered_json()},
                    {"lacks_sampling_error", d.lacks_sampling(i)}};
    }
    drafts.push_back({{"name", draft.name},
                      {"tree", json_of(draft.tree)},
                      {"acceptance", acceptance},
                      {"cost", d.cost(i).name()},
                      {"misfit", d.misfits[i].empty() ? ordered_json() : ordered_json(d.misfits[i])},
                      {"points", points},
                      {"schedule", json_of(draft.schedule)},
                      {"crossover_batch", or_null(draft.crossover_batch)}});
  }
  return drafts;
}

/// An unknown value has the same keys.
ordered_json json_of(const std::optional<planning::PredictedFigure>& figure) {
  if (!figure) return {{"predicted", nullptr}, {"measured", nullptr}, {"ci95", nullptr}};
  return {{"predicted", figure->predicted}, {"measured", figure->measured}, {"ci95", json_of(figure->ci95)}};
}

ordered_json json_of(const planning::BenchPrediction& prediction) {
  return {{"file", prediction.file.string()},
          {"line", prediction.line},
          {"predicted", number_or_null(prediction.predicted)},
          {"measured", prediction.measured},
          {"relative_error", number_or_null(prediction.relative_error)},
          {"reason", prediction.reason.empty() ? ordered_json() : ordered_json(prediction.reason)},
          {"predicted_ci95", prediction.ci95 ? json_of(*prediction.ci95) : ordered_json()},
          {"drifted", prediction.drifted().empty() ? ordered_json() : ordered_json(prediction.drifted())},
          {"round_seconds", json_of(prediction.round)},
          {"tokens_per_step", json_of(prediction.tokens)}};
}

ordered_json json_of(const std::vector<planning::BenchPrediction>& predictions) {
  ordered_json list = ordered_json::array();
  for (const planning::BenchPrediction& prediction : predictions) list.push_back(json_of(prediction));
  return list;
}

/// A run by itself, without comparing it with the others.
ordered_json json_of(const planning::BenchFigures& run) {
  return {{"file", run.file.string()},
          {"line", run.line},
          {"model", run.model},
          {"max_concurrency", number_or_null(run.max_concurrency)},
          {"input_tokens", run.input_tokens},
          {"output_tokens", run.output_tokens},
          {"gamma", run.gamma},
          {"tree", json_of(run.tree)},
          {"server", run.server.empty() ? ordered_json() : ordered_json(run.server)},
          {"batch", run.batch},
          {"context", run.context},
          {"tokens_per_step", run.tokens_per_step},
          {"seconds_per_output_token", run.seconds_per_output_token},
          {"round_seconds", run.round_seconds},
          {"measured_speedup", nullptr},
          {"predicted_seconds_per_output_token", nullptr},
          {"prediction_error", nullptr}};
}

/// The benchmark runs, their gains, and how well each is predicted by the others.
ordered_json json_runs(const planning::BenchPlan& bench) {
  ordered_json runs = ordered_json::array();
  for (std::size_t i = 0; i < bench.runs.size(); ++i) {
    ordered_json object = json_of(bench.runs[i]);
    for (const planning::BenchSpeedup& speedup : bench.speedups) {
      if (speedup.speculative == i) object["measured_speedup"] = json_of(speedup.speedup);
    }
    if (i < bench.leave_one_out.size()) {
      object["predicted_seconds_per_output_token"] = number_or_null(bench.leave_one_out[i].predicted);
      object["prediction_error"] = number_or_null(bench.leave_one_out[i].relative_error);
    }
    runs.push_back(std::move(object));
  }
  return runs;
}

ordered_json json_of(const planning::GammaComparison& row) {
  return {{"batch", row.batch},
          {"context", row.context},
          {"gamma", row.gamma},
          {"tokens_per_step", row.tokens_per_step},
          {"seconds_per_output_token", row.seconds_per_output_token},
          {"over_fastest", json_of(row.slower)},
          {"fastest", row.fastest}};
}

/// The drafts compared with each other, if no run is plain.
ordered_json json_relative(const Plan& d) {
  ordered_json list = ordered_json::array();
  if (!d.bench) return list;
  for (const planning::GammaComparison& row : d.bench->relative) list.push_back(json_of(row));
  return list;
}

ordered_json json_next_run(const Plan& d) {
  if (!d.next_run) return nullptr;
  const planning::NextRun& run = *d.next_run;
  return {{"gamma", run.gamma},           {"batch", run.batch},
          {"context", run.context},       {"minutes", run.minutes},
          {"regret_now", run.regret_now}, {"regret_after", run.regret_after},
          {"candidates", run.candidates}, {"command", planner::next_run_command(d)}};
}

ordered_json json_bench(const Plan& d) {
  if (!d.bench) return nullptr;
  return {{"model", d.bench->model},
          {"leave_one_out_error", number_or_null(d.bench->leave_one_out_error)},
          {"next_run", json_next_run(d)}};
}

ordered_json json_config(const Plan& d) {
  if (!d.config) return nullptr;
  return {{"engine", name_of(d.config->engine)},
          {"release", planning::newest_release(d.config->engine)},
          {"text", d.config->text},
          {"command", d.config->command},
          {"runs", json_of(d.config->runs)},
          {"notes", d.config->notes}};
}

/// The rule that chose the gamma of a point, in the words of the closed forms.
std::string_view basis_of_recommendation(const Plan& d, const PointPlan& point) {
  if (point.optimal()->gamma == 0) return "not_worth_it";
  if (point.unsure_row) return "sure";
  if (point.passed_over_row) return point.lies_beyond_measured() ? "sure" : "measured";
  const bool states_range = !d.drafts.empty() && d.drafts[d.shown()].acceptance.states_range();
  if (states_range || point.optimal()->tokens_bracket) return "minimax_regret";
  if (!point.at_limit) return "optimum";
  return point.optimal_row == point.rows.size() - 1 ? "max_gamma" : "share_of_limit";
}

/// The top-level keys of a plan by closed forms, as far as one point determines them.
void put_top_of_point(const Plan& d, ordered_json& json) {
  const bool one = d.points().size() == 1;
  const PointPlan& point = d.points().front();
  const bool decided = planning::decides(point.basis, d.extrapolates()) && d.refused().empty();
  const std::optional<double> alpha =
      one && !d.drafts.empty() ? d.drafts[d.shown()].acceptance.alpha : std::optional<double>();
  json["alpha"] = number_or_null(alpha);
  json["rejection"] = alpha ? ordered_json(planner::complement(*alpha, 1 - *alpha)) : ordered_json();
  json["c"] = one ? number_or_null(point.c) : ordered_json();
  json["c_hat"] = nullptr;
  json["worth_it"] = one && decided ? ordered_json(point.optimal()->gamma > 0) : ordered_json();
  json["break_even_alpha"] = one ? number_or_null(point.break_even_alpha) : ordered_json();
  json["optimal"] = one ? json_optimal(point) : ordered_json();
  json["recommended"] = nullptr;
  if (one && decided) {
    const bool drafts = point.verdict != planning::Verdict::do_not_speculate;
    json["recommended"] = {{"gamma", drafts ? point.optimal()->gamma : 0},
                           {"basis", drafts ? basis_of_recommendation(d, point) : "not_worth_it"}};
  } else if (one) {
    json["recommended"] = {{"gamma", nullptr}, {"basis", "none"}};
  }
  json["oracle_speedup"] = nullptr;
  json["near_optimal_gammas"] = one ? ordered_json(point.near_optimal_gammas) : ordered_json();
  ordered_json ranges = ordered_json::array();
  for (const std::int64_t gamma : point.near_optimal_gammas) {
    if (!ranges.empty() && ranges.back()[1] == gamma - 1) {
      ranges.back()[1] = gamma;
    } else {
      ranges.push_back({gamma, gamma});
    }
  }
  json["near_optimal_ranges"] = one ? ranges : ordered_json();
  json["limit"] = nullptr;
  json["deployed"] = one ? json_of(point.deployed) : ordered_json();
  json["interval"] = nullptr;
  json["finite"] = nullptr;
  json["rows"] = nullptr;
  if (!one) return;
  ordered_json& rows = json["rows"] = ordered_json::array();
  for (const DeploymentRow& row : point.rows) {
    rows.push_back({{"gamma", row.gamma},
                    {"expected_tokens", row.tokens_per_step},
                    {"speedup", row.speedup},
                    {"operations_factor", nullptr},
                    {"memory_access_factor", 1 / row.tokens_per_step},
                    {"speedup_interval", {row.speedup_ci95.lo, row.speedup_ci95.hi}},
                    {"extrapolated", row.extrapolated},
                    {"finite_speedup", nullptr},
                    {"worst_regret", nullptr}});
  }
}

}  // namespace

void put_points(const Plan& d, ordered_json& json) {
  if (!d.has_points()) {
    for (const char* key : {"points", "drafts", "schedule", "runs", "backtest", "relative"})
      json[key] = ordered_json::array();
    for (const char* key : {"recommended_draft", "crossover_batch", "crossover_interval", "config", "bench"})
      json[key] = nullptr;
    return;
  }
  if (!d.closed_form) put_top_of_point(d, json);
  json["points"] = json_points(d);
  const PointPlan& first = d.points().front();
  if (d.closed_form && first.optimal_row && json["optimal"]["gamma"] == first.optimal()->gamma) {
    json["points"][0]["optimal"].update(json["optimal"]);
  }
  json["drafts"] = json_drafts(d);
  json["recommended_draft"] = nullptr;
  if (d.deployment.recommended_draft)
    json["recommended_draft"] = d.deployment.drafts[*d.deployment.recommended_draft].name;
  json["schedule"] = json_of(d.shown_plan().schedule);
  json["crossover_batch"] = or_null(d.shown_plan().crossover_batch);
  json["crossover_interval"] = json_of(d.shown_plan().crossover_bounds);
  json["config"] = json_config(d);
  json["bench"] = json_bench(d);
  json["runs"] = d.bench ? json_runs(*d.bench) : ordered_json::array();
  json["backtest"] = d.bench ? json_of(d.bench->backtest) : ordered_json::array();
  json["relative"] = json_relative(d);
}

std::map<std::string, ordered_json, std::less<>> rows_of_empty_runs() {
  ordered_json run = json_of(planning::BenchFigures{});
  run["measured_speedup"] = json_of(estimate::Estimate{});
  ordered_json relative = json_of(planning::GammaComparison{});
  // Members that are null at points that lack them.
  ordered_json point = {{"next_measurement", nullptr}};
  for (const char* key : {"gamma", "batch", "context", "requests", "with_baseline", "command"})
    point["next_measurement"][key] = nullptr;
  point["optimal"]["speedup_estimate"] = json_of(estimate::Estimate{});
  point["interval_share"] = {{"acceptance", nullptr}, {"cost", nullptr}};
  point["seconds_per_output_token"] = json_of(std::optional(planning::BaselineAndSpeculative{}));
  point["output_tokens_per_second"] = point["seconds_per_output_token"];
  point["break_even_c"] = {{"c", nullptr}, {"gamma", nullptr}};
  point["deployed"] = json_of(std::optional(planning::DeployedAtPoint{}));
  return {{"points", point}, {"runs", run}, {"backtest", json_of(planning::BenchPrediction{})}, {"relative", relative}};
}

ordered_json json_of(const Plan& d) {
  ordered_json json = d.closed_form ? closed_form_json(d) : ordered_json::object();
  put_points(d, json);
  return json;
}

}  // namespace specdec::render
