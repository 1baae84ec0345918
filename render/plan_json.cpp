#include "planner/benchmark_command.hpp"
#include "planner/decision.hpp"
#include "planner/number_text.hpp"
#include "render/json_values.hpp"
#include "render/plan.hpp"

#include <map>
#include <string>

namespace specdec::render {
namespace {

using planner::Plan;

using nlohmann::ordered_json;
using planning::DeploymentRow;
using planning::PointPlan;

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

/// An estimate everywhere: a value with its interval, or bounds.
ordered_json range_json(double value, const estimate::Interval& ci95, const std::optional<estimate::Interval>& bounds) {
  if (bounds) return {{"value", nullptr}, {"bounds", pair_of(bounds)}, {"ci95", pair_of(ci95)}};
  return {{"value", value}, {"ci95", ci95.lo < ci95.hi ? pair_of(ci95) : ordered_json()}};
}

ordered_json json_of(const Plan& d, const PointPlan& point, const DeploymentRow& row) {
  ordered_json object = {{"gamma", row.gamma},
                         {"tokens_per_step", range_json(row.tokens_per_step, row.tokens_interval, row.tokens_bounds)}};
  put_times(object, d, point, row);
  object["speedup"] = range_json(row.speedup, row.speedup_ci95, row.speedup_bounds);
  object["regret"] = row.regret;
  object["share"] = row.share;
  object["extrapolated"] = row.extrapolated;
  object["bound"] = or_null(bound_of(d, point, row.gamma));
  object["operations_factor"] = nullptr;
  object["memory_access_factor"] = 1 / row.tokens_per_step;
  object["finite_speedup"] = nullptr;
  const auto place = static_cast<std::size_t>(row.gamma);
  if (d.closed_form && place < d.closed_form->rows.size()) {
    const planning::ClosedFormRow& exact = d.closed_form->rows[place];
    put_number(object, "operations_factor", exact.operations_factor);
    put_number(object, "memory_access_factor", exact.memory_access_factor);
    object["finite_speedup"] = number_or_null(exact.finite_speedup);
  }
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
          {"with_baseline", next->with_baseline},
          {"command", planner::benchmark_command(d, *next)}};
}

ordered_json json_of(const std::optional<planning::DeployedAtPoint>& deployed) {
  if (!deployed) return nullptr;
  return {{"gamma", deployed->gamma},
          {"speedup", deployed->speedup},
          {"regret", deployed->regret},
          {"behind_recommended", deployed->behind_recommended},
          {"share_over", deployed->share_over}};
}

ordered_json json_of(const planning::Uncertainty& left) {
  return {{"regret", left.regret},
          {"with_acceptance_known", left.with_acceptance_known},
          {"with_cost_known", left.with_cost_known}};
}

ordered_json json_point(const Plan& d, std::size_t index) {
  const PointPlan& point = d.points()[index];
  ordered_json object = {{"batch", point.batch},
                         {"context", point.context},
                         {"verdict", worlds::name_of(point.certainty)},
                         {"share", point.share},
                         {"gamma", point.optimal().gamma},
                         {"basis", name_of(point.basis)},
                         {"doubt", point.doubt.empty() ? ordered_json() : ordered_json(point.doubt)}};
  object["speedup"] = estimate_json(point.speedup_estimate);
  object["uncertainty"] = json_of(point.uncertainty);
  object["next_measurement"] = json_of(d, point.next);
  object["near_optimal_gammas"] = point.near_optimal_gammas;
  object["seconds_per_output_token"] = json_of(point.seconds_per_output_token);
  object["output_tokens_per_second"] = json_of(point.output_tokens_per_second);
  object["c"] = number_or_null(point.c);
  object["verify_factor"] = number_or_null(point.verify_factor);
  object["break_even_alpha"] = number_or_null(point.break_even_alpha);
  object["deployed"] = json_of(point.deployed);
  ordered_json& rows = object["rows"] = ordered_json::array();
  for (const DeploymentRow& row : point.rows) rows.push_back(json_of(d, point, row));
  return object;
}

ordered_json json_of(const std::vector<planning::PlannedStretch>& schedule) {
  ordered_json list = ordered_json::array();
  for (const planning::PlannedStretch& stretch : schedule) {
    list.push_back({{"from", stretch.batch_low},
                    {"to", stretch.batch_high},
                    {"gamma", stretch.gamma},
                    {"speedup", stretch.speedup},
                    {"share", stretch.share},
                    {"basis", name_of(stretch.basis)}});
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
                        {"verdict", worlds::name_of(point.certainty)},
                        {"gamma", point.optimal().gamma},
                        {"speedup", estimate_json(point.speedup_estimate)},
                        {"best", d.deployment.best_draft[j] == i}});
    }
    ordered_json acceptance;
    if (!d.drafts.empty()) {
      const planner::Acceptance& its = d.drafts[i].acceptance;
      acceptance = {{"source", its.text},
                    {"alpha", number_or_null(its.alpha)},
                    {"method", its.method},
                    {"clusters", or_null(its.clusters)},
                    {"rule", its.rule ? ordered_json(traces::name_of(*its.rule)) : ordered_json()}};
    }
    const std::vector<double>& better = d.deployment.share_better;
    drafts.push_back({{"name", draft.name},
                      {"tree", json_of(draft.tree)},
                      {"acceptance", acceptance},
                      {"cost", d.cost(i).name()},
                      {"misfit", d.misfits[i].empty() ? ordered_json() : ordered_json(d.misfits[i])},
                      {"share_recommended_is_faster", better.empty() ? ordered_json() : ordered_json(better[i])},
                      {"points", points},
                      {"schedule", json_of(draft.schedule)},
                      {"crossover_batch", or_null(draft.crossover_batch)}});
  }
  return drafts;
}

ordered_json predicted_json(const std::optional<double>& value, const std::optional<estimate::Interval>& ci95) {
  return {{"value", number_or_null(value)}, {"ci95", pair_of(ci95)}};
}

/// An unknown value has the same keys.
ordered_json json_of(const std::optional<planning::PredictedFigure>& figure) {
  if (!figure) return {{"predicted", predicted_json({}, {})}, {"measured", nullptr}};
  return {{"predicted", predicted_json(figure->predicted, figure->ci95)}, {"measured", figure->measured}};
}

ordered_json json_of(const planning::BenchPrediction& prediction) {
  return {{"file", prediction.file.string()},
          {"line", prediction.line},
          {"predicted", predicted_json(prediction.predicted, prediction.ci95)},
          {"measured", prediction.measured},
          {"relative_error", number_or_null(prediction.relative_error)},
          {"reason", prediction.reason.empty() ? ordered_json() : ordered_json(prediction.reason)},
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
      if (speedup.speculative == i) object["measured_speedup"] = estimate_json(speedup.speedup);
    }
    if (i < bench.leave_one_out.size()) {
      object["predicted_seconds_per_output_token"] = number_or_null(bench.leave_one_out[i].predicted);
      object["prediction_error"] = number_or_null(bench.leave_one_out[i].relative_error);
    }
    runs.push_back(std::move(object));
  }
  return runs;
}

ordered_json json_of(const planning::NextRun& run) {
  return {{"gamma", run.gamma},
          {"batch", run.batch},
          {"context", run.context},
          {"minutes", run.minutes},
          {"regret_after", run.regret_after}};
}

ordered_json json_next_run(const Plan& d) {
  const std::optional<planning::NextRun> run = d.next_run();
  if (!run) return nullptr;
  ordered_json object = json_of(*run);
  object["command"] = planner::next_run_command(d);
  return object;
}

ordered_json json_bench(const Plan& d) {
  if (!d.bench) return nullptr;
  ordered_json candidates = ordered_json::array();
  if (d.run_values)
    for (const planning::NextRun& run : d.run_values->runs) candidates.push_back(json_of(run));
  return {{"model", d.bench->model},
          {"leave_one_out_error", number_or_null(d.bench->leave_one_out_error)},
          {"expected_regret", d.run_values ? ordered_json(d.run_values->regret) : ordered_json()},
          {"next_run", json_next_run(d)},
          {"candidates", std::move(candidates)}};
}

ordered_json json_config(const Plan& d) {
  if (!d.config) return nullptr;
  return {{"engine", name_of(d.config->engine)},
          {"release", planning::newest_release(d.config->engine)},
          {"text", d.config->text},
          {"command", d.config->command},
          {"notes", d.config->notes}};
}

ordered_json json_closed_form(const Plan& d) {
  if (!d.closed_form) return nullptr;
  const planning::ClosedForm& form = *d.closed_form;
  const core::AcceptanceRate rate = d.drafts.front().acceptance.stated->rate;
  ordered_json json = {{"alpha", planner::complement(rate.rejection(), rate.alpha())},
                       {"rejection", planner::complement(rate.alpha(), rate.rejection())},
                       {"best_gamma", form.best.attained() ? ordered_json(form.best.gamma) : ordered_json()}};
  put_number(json, "best_speedup", form.best.speedup);
  json["gamma_real"] = number_or_null(form.gamma_real);
  json["break_even_alpha"] = form.break_even ? ordered_json(form.break_even->alpha()) : ordered_json();
  json["oracle_speedup"] = number_or_null(form.oracle_speedup);
  json["finite"] = nullptr;
  if (form.finite) {
    json["finite"] = {{"tokens", form.finite->tokens},
                      {"gamma", form.finite->gamma},
                      {"speedup", form.finite->speedup},
                      {"expected_steps", form.finite->expected_steps},
                      {"complete", form.finite->complete}};
  }
  return json;
}

ordered_json json_assumed(const Plan& d) {
  ordered_json list = ordered_json::array();
  for (const planner::AssumedVerification& one : planner::assumed_verification(d))
    list.push_back({{"verify_factor", one.verify_factor}, {"gamma", one.gamma}, {"speedup", one.speedup}});
  return list;
}

}  // namespace

void put_plan(const Plan& d, ordered_json& json) {
  json["decision"] = json_of(planner::decision_of(d));
  json["assumed_verification"] = json_assumed(d);
  ordered_json& points = json["points"] = ordered_json::array();
  for (std::size_t i = 0; i < d.points().size(); ++i) points.push_back(json_point(d, i));
  json["closed_form"] = json_closed_form(d);
  json["drafts"] = json_drafts(d);
  json["recommended_draft"] = nullptr;
  if (d.deployment.recommended_draft)
    json["recommended_draft"] = d.deployment.drafts[*d.deployment.recommended_draft].name;
  json["schedule"] = json_of(d.shown_plan().schedule);
  json["crossover_batch"] = or_null(d.shown_plan().crossover_batch);
  json["config"] = json_config(d);
  json["bench"] = json_bench(d);
  json["runs"] = d.bench ? json_runs(*d.bench) : ordered_json::array();
  json["backtest"] = d.bench ? json_of(d.bench->backtest) : ordered_json::array();
}

std::map<std::string, ordered_json, std::less<>> rows_of_empty_runs() {
  ordered_json run = json_of(planning::BenchFigures{});
  run["measured_speedup"] = estimate_json(estimate::Estimate{});
  // Members that are null at points that lack them.
  ordered_json point = {{"next_measurement", nullptr}};
  for (const char* key : {"gamma", "batch", "context", "with_baseline", "command"})
    point["next_measurement"][key] = nullptr;
  point["speedup"] = estimate_json(estimate::Estimate{});
  point["seconds_per_output_token"] = json_of(std::optional(planning::BaselineAndSpeculative{}));
  point["output_tokens_per_second"] = point["seconds_per_output_token"];
  point["deployed"] = json_of(std::optional(planning::DeployedAtPoint{}));
  return {{"points", point}, {"runs", run}, {"backtest", json_of(planning::BenchPrediction{})}};
}

ordered_json json_of(const Plan& d) {
  ordered_json json = ordered_json::object();
  put_plan(d, json);
  return json;
}

}  // namespace specdec::render
