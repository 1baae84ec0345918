#include "cli/plan_deployment.hpp"

#include <string_view>

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;
using planning::DeploymentRow;
using planning::PointPlan;

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json json_of(const estimate::Interval& interval) { return {interval.lo, interval.hi}; }

ordered_json json_of(const estimate::Estimate& estimate) {
  return {{"value", estimate.value},
          {"ci95", estimate.ci95 ? json_of(*estimate.ci95) : ordered_json()},
          {"method", estimate.method}};
}

ordered_json json_of(const std::optional<planning::BaselineAndSpeculative>& both) {
  if (!both) return nullptr;
  return {{"baseline", both->baseline}, {"speculative", both->speculative}};
}

/// Seconds where the cost knows them and the split into parts, null where it does not.
void put_times(ordered_json& object, const Deployment& d, const PointPlan& point, const DeploymentRow& row) {
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

ordered_json json_of(const Deployment& d, const PointPlan& point, const DeploymentRow& row) {
  ordered_json object = {{"gamma", row.gamma},
                         {"tokens_per_step", row.tokens_per_step},
                         {"tokens_per_step_interval", json_of(row.tokens_interval)}};
  put_times(object, d, point, row);
  object["speedup"] = row.speedup;
  object["speedup_ci95"] = json_of(row.speedup_ci95);
  object["regret"] = row.regret;
  object["extrapolated"] = row.extrapolated;
  object["bound"] = or_null(bound_of(d, point, row.gamma));
  return object;
}

ordered_json json_of(const Deployment& d, const std::optional<planning::NextMeasurement>& next) {
  if (!next) return nullptr;
  return {{"gamma", next->gamma},
          {"batch", next->batch},
          {"context", next->context},
          {"requests", or_null(next->requests)},
          {"with_baseline", next->with_baseline},
          {"command", command_for(d, *next)}};
}

ordered_json json_of(const std::optional<planning::DeployedAtPoint>& deployed) {
  if (!deployed) return nullptr;
  return {{"gamma", deployed->gamma},
          {"speedup", deployed->speedup},
          {"regret", deployed->regret},
          {"worst_regret", deployed->worst_regret}};
}

/// The best gamma of a point, with the keys that the closed form's `optimal` has.
ordered_json json_optimal(const PointPlan& point) {
  const DeploymentRow& best = point.optimal();
  return {
      {"gamma", best.gamma},     {"gamma_real", nullptr},        {"expected_tokens", best.tokens_per_step},
      {"speedup", best.speedup}, {"operations_factor", nullptr}, {"memory_access_factor", 1 / best.tokens_per_step}};
}

std::optional<planning::Verdict> verdict_at_design_effect_3(const Deployment& d, std::size_t point) {
  if (!d.at_design_effect_3) return std::nullopt;
  return d.at_design_effect_3->drafts[d.shown()].points[point].verdict;
}

ordered_json json_point(const Deployment& d, std::size_t index) {
  const PointPlan& point = d.points()[index];
  ordered_json object = {{"batch", point.batch}, {"context", point.context}, {"verdict", name_of(point.verdict)}};
  const auto wider = verdict_at_design_effect_3(d, index);
  object["verdict_at_design_effect_3"] = wider ? ordered_json(name_of(*wider)) : ordered_json();
  object["dominant_source"] = point.dominant_source ? ordered_json(name_of(*point.dominant_source)) : ordered_json();
  object["next_measurement"] = json_of(d, point.next);
  object["optimal"] = json_optimal(point);
  object["optimal"]["speedup_estimate"] = json_of(point.speedup_estimate);
  object["passed_over_gamma"] = nullptr;
  if (point.passed_over_row) object["passed_over_gamma"] = point.rows[*point.passed_over_row].gamma;
  object["interval_share"] = nullptr;
  if (point.interval_share) {
    object["interval_share"] = {{"acceptance", point.interval_share->acceptance}, {"cost", point.interval_share->cost}};
  }
  object["worst_regret"] = point.worst_regret;
  object["near_optimal_gammas"] = point.near_optimal_gammas;
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

ordered_json json_points(const Deployment& d) {
  ordered_json points = ordered_json::array();
  for (std::size_t i = 0; i < d.points().size(); ++i) points.push_back(json_point(d, i));
  return points;
}

ordered_json json_of(const std::vector<planning::ScheduleStretch>& schedule) {
  ordered_json list = ordered_json::array();
  for (const auto& stretch : schedule) {
    list.push_back({{"batch_low", stretch.batch_low},
                    {"batch_high", stretch.batch_high},
                    {"gamma", stretch.gamma},
                    {"held", stretch.held}});
  }
  return list;
}

ordered_json json_drafts(const Deployment& d) {
  ordered_json drafts = ordered_json::array();
  for (std::size_t i = 0; i < d.plan.drafts.size(); ++i) {
    const planning::DraftPlan& draft = d.plan.drafts[i];
    ordered_json points = ordered_json::array();
    for (std::size_t j = 0; j < draft.points.size(); ++j) {
      const PointPlan& point = draft.points[j];
      points.push_back({{"batch", point.batch},
                        {"context", point.context},
                        {"verdict", name_of(point.verdict)},
                        {"gamma", point.optimal().gamma},
                        {"speedup_estimate", json_of(point.speedup_estimate)},
                        {"best", d.plan.best_draft[j] == i}});
    }
    ordered_json acceptance;
    if (!d.drafts.empty()) {
      const PlannedAcceptance& its = d.drafts[i].acceptance;
      acceptance = {{"source", its.text},
                    {"alpha", number_or_null(its.alpha)},
                    {"method", its.method},
                    {"clusters", or_null(its.clusters)},
                    {"rule", its.rule ? ordered_json(traces::name_of(*its.rule)) : ordered_json()}};
    }
    const cost::RoundCost& cost = d.bench ? *d.bench->cost : *d.drafts[i].cost;
    drafts.push_back({{"name", draft.name},
                      {"acceptance", acceptance},
                      {"cost", cost.name()},
                      {"points", points},
                      {"schedule", json_of(draft.schedule)},
                      {"crossover_batch", or_null(draft.crossover_batch)}});
  }
  return drafts;
}

ordered_json json_of(const std::vector<planning::BenchPrediction>& predictions) {
  ordered_json list = ordered_json::array();
  for (const planning::BenchPrediction& prediction : predictions) {
    list.push_back({{"file", prediction.file.string()},
                    {"line", prediction.line},
                    {"predicted", number_or_null(prediction.predicted)},
                    {"measured", prediction.measured},
                    {"relative_error", number_or_null(prediction.relative_error)},
                    {"reason", prediction.reason.empty() ? ordered_json() : ordered_json(prediction.reason)}});
  }
  return list;
}

/// What the benchmark runs were, what they gained, and how well each is predicted by the others.
ordered_json json_runs(const planning::BenchPlan& bench) {
  ordered_json runs = ordered_json::array();
  for (std::size_t i = 0; i < bench.runs.size(); ++i) {
    const planning::BenchFigures& run = bench.runs[i];
    ordered_json object = {{"file", run.file.string()},
                           {"line", run.line},
                           {"model", run.model},
                           {"max_concurrency", number_or_null(run.max_concurrency)},
                           {"input_tokens", run.input_tokens},
                           {"output_tokens", run.output_tokens},
                           {"gamma", run.gamma},
                           {"batch", run.batch},
                           {"context", run.context},
                           {"tokens_per_step", run.tokens_per_step},
                           {"seconds_per_output_token", run.seconds_per_output_token},
                           {"round_seconds", run.round_seconds},
                           {"measured_speedup", nullptr},
                           {"predicted_seconds_per_output_token", nullptr},
                           {"prediction_error", nullptr}};
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

ordered_json json_bench(const Deployment& d) {
  if (!d.bench) return nullptr;
  return {{"model", d.bench->model}, {"leave_one_out_error", number_or_null(d.bench->leave_one_out_error)}};
}

ordered_json json_config(const Deployment& d) {
  if (!d.config) return nullptr;
  ordered_json variants = ordered_json::array();
  for (const planning::EngineVariant& variant : d.config->variants) {
    variants.push_back({{"releases", variant.releases}, {"text", variant.text}, {"command", variant.command}});
  }
  return {{"engine", name_of(d.config->engine)},
          {"variants", variants},
          {"runs", json_of(d.config->runs)},
          {"notes", d.config->notes}};
}

/// The keys that a plan by closed forms has at the top, as far as one point says them.
void put_top_of_point(const Deployment& d, ordered_json& json) {
  const bool one = d.points().size() == 1;
  const PointPlan& point = d.points().front();
  const DeploymentRow& best = point.optimal();
  const std::optional<double> alpha =
      one && !d.drafts.empty() ? d.drafts[d.shown()].acceptance.alpha : std::optional<double>();
  json["alpha"] = number_or_null(alpha);
  json["rejection"] = alpha ? ordered_json(1 - *alpha) : ordered_json();
  json["c"] = one ? number_or_null(point.c) : ordered_json();
  json["c_hat"] = nullptr;
  json["worth_it"] = one ? ordered_json(best.gamma > 0) : ordered_json();
  json["break_even_alpha"] = one ? number_or_null(point.break_even_alpha) : ordered_json();
  json["optimal"] = one ? json_optimal(point) : ordered_json();
  json["recommended"] = nullptr;
  if (one) {
    const std::string_view basis = best.gamma == 0 ? "not_worth_it" : point.at_limit ? "max_gamma" : "optimum";
    json["recommended"] = {{"gamma", best.gamma}, {"basis", basis}};
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
                    {"extrapolated", row.extrapolated},
                    {"finite_speedup", nullptr},
                    {"worst_regret", nullptr}});
  }
}

}  // namespace

void put_deployment(const Deployment& d, bool has_closed_form, ordered_json& json) {
  if (!has_closed_form) put_top_of_point(d, json);
  json["points"] = json_points(d);
  if (has_closed_form && json["optimal"]["gamma"] == d.points().front().optimal().gamma) {
    json["points"][0]["optimal"].update(json["optimal"]);
  }
  json["drafts"] = json_drafts(d);
  json["recommended_draft"] = nullptr;
  if (d.plan.recommended_draft) json["recommended_draft"] = d.plan.drafts[*d.plan.recommended_draft].name;
  json["schedule"] = json_of(d.shown_plan().schedule);
  json["crossover_batch"] = or_null(d.shown_plan().crossover_batch);
  json["config"] = json_config(d);
  json["bench"] = json_bench(d);
  json["runs"] = d.bench ? json_runs(*d.bench) : ordered_json::array();
  json["backtest"] = d.bench ? json_of(d.bench->backtest) : ordered_json::array();
}

void put_no_deployment(ordered_json& json) {
  for (const char* key : {"points", "drafts", "schedule", "runs", "backtest"}) json[key] = ordered_json::array();
  for (const char* key : {"recommended_draft", "crossover_batch", "config", "bench"}) json[key] = nullptr;
}

}  // namespace specdec::cli
