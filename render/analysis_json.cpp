#include "render/analysis.hpp"

#include <algorithm>
#include <array>

#include "render/json_values.hpp"

namespace specdec::render {
namespace {

using estimate::Estimate;
using estimate::GammaReplay;
using estimate::Interval;
using estimate::ReplayReport;
using nlohmann::ordered_json;
using planning::TraceAnalysis;

ordered_json acceptance_json(const std::optional<estimate::AcceptanceEstimate>& alpha) {
  if (!alpha) return nullptr;
  ordered_json json = {{"value", number_or_null(alpha->value)}};
  if (!alpha->value) json["bounds"] = pair_of(alpha->bounds);
  json["ci95"] = pair_of(alpha->ci95);
  json["method"] = alpha->method;
  json["clusters"] = alpha->clusters;
  json["effective_clusters"] = alpha->effective_clusters;
  json["degrees_of_freedom"] = number_or_null(alpha->degrees_of_freedom);
  return json;
}

/// A figure from the two ends of a replay, or from the one that there is.
ordered_json figure_json(const std::optional<Estimate>& lower, const std::optional<Estimate>& upper = {}) {
  if (!lower) return bracket_json({});
  if (!upper) return bracket_json(estimate::exactly(lower->value), lower->ci95);
  const Interval ends = estimate::hull(estimate::exactly(lower->value), estimate::exactly(upper->value));
  const bool both = lower->ci95 && upper->ci95;
  return bracket_json(ends, both ? std::optional(estimate::hull(*lower->ci95, *upper->ci95)) : lower->ci95);
}

ordered_json text_source_json(const planner::Analysis& a) {
  const estimate::TextSourceResult& tests = a.recording.text_source;
  return {{"path", traces::name_of(a.metadata.path)},
          {"acceptance_z", number_or_null(tests.acceptance.z)},
          {"acceptance_positions", tests.acceptance.positions},
          {"surprisal_z", number_or_null(tests.surprisal.z)},
          {"surprisal_positions", tests.surprisal.positions},
          {"root_ratio_z", number_or_null(tests.root.z)},
          {"ratio_positions", tests.root.positions},
          {"mean_ratio", number_or_null(tests.mean_ratio())},
          {"warning_z", estimate::text_source_warning},
          {"suspicious", tests.suspicious()},
          {"rows_shifted_by", tests.rows_shifted_by ? ordered_json(*tests.rows_shifted_by) : ordered_json()}};
}

ordered_json calibration_json(const std::string& by, const estimate::CalibratedBin& bin) {
  return {{"by", by},
          {"from", bin.lo},
          {"to", bin.hi},
          {"positions", bin.positions},
          {"drafted", bin.drafted},
          {"confidence", number_or_null(bin.confidence)},
          {"acceptance", estimate_json(bin.acceptance)}};
}

void put_law(ordered_json& json, const TraceAnalysis& t) {
  json["d_lk"] = t.d_lk ? bracket_json(t.d_lk->bounds, t.d_lk->ci95) : bracket_json({});
  ordered_json& calibration = json["calibration"] = ordered_json::array();
  const auto put_bins = [&](const std::string& by, const std::vector<estimate::CalibratedBin>& rows) {
    for (const estimate::CalibratedBin& bin : rows) calibration.push_back(calibration_json(by, bin));
  };
  put_bins("draft_top_probability", t.calibration_by_top);
  put_bins("draft_token_probability", t.calibration);
}

const GammaReplay* replayed(const ReplayReport& report, std::int64_t gamma) {
  return gamma < std::ssize(report.gammas) ? &report.gammas[static_cast<std::size_t>(gamma)] : nullptr;
}

/// One gamma's figures by exact replay, at both ends of its brackets if there are two.
ordered_json gamma_json(const GammaReplay& low, const GammaReplay* high) {
  ordered_json json = {{"gamma", low.gamma}};
  ordered_json& tokens = json["tokens_per_step"];
  tokens["replay"] = figure_json(low.tokens_per_step, high ? std::optional(high->tokens_per_step) : std::nullopt);
  const bool exact = high == nullptr;
  tokens["iid"] = exact ? number_or_null(low.iid_tokens_per_step) : ordered_json();
  tokens["iid_minus_replay"] = exact ? number_or_null(low.difference) : ordered_json();
  ordered_json& speedup = json["speedup"];
  speedup["replay"] = figure_json(low.speedup, high ? high->speedup : std::nullopt);
  speedup["iid"] = exact ? number_or_null(low.iid_speedup) : ordered_json();
  return json;
}

/// One gamma's figures without replay.
ordered_json gamma_json(const planning::IidRow& iid) {
  ordered_json json = {{"gamma", iid.gamma}};
  json["tokens_per_step"] = {
      {"replay", figure_json({})}, {"iid", number_or_null(iid.tokens_per_step)}, {"iid_minus_replay", nullptr}};
  json["speedup"] = {{"replay", figure_json({})}, {"iid", number_or_null(iid.speedup)}};
  return json;
}

/// The shown gammas of a recording or of one of its tasks.
ordered_json gamma_rows(const std::vector<std::int64_t>& gammas, const ReplayReport* low, const ReplayReport* high,
                        const std::vector<planning::IidRow>& iid) {
  ordered_json rows = ordered_json::array();
  for (const std::int64_t gamma : gammas) {
    rows.push_back(low ? gamma_json(*replayed(*low, gamma), high ? replayed(*high, gamma) : nullptr)
                       : gamma_json(iid[static_cast<std::size_t>(gamma - 1)]));
  }
  return rows;
}

template <class Report>
const Report* pointer_to(const std::optional<Report>& report) {
  return report ? &*report : nullptr;
}

ordered_json optimal_json(const ReplayReport* low, const ReplayReport* high) {
  ordered_json json = {{"gamma", nullptr},           {"speedup", bracket_json({})}, {"near_optimal_gammas", nullptr},
                       {"at_limit", nullptr},        {"gamma_bounds", nullptr},     {"break_even_c", nullptr},
                       {"break_even_gamma", nullptr}};
  if (low && low->break_even && !high) {
    json["break_even_c"] = low->break_even->c;
    json["break_even_gamma"] = low->break_even->gamma;
  }
  if (!low || !low->optimum) return json;
  const estimate::ReplayOptimum& best = *low->optimum;
  if (high) {
    if (!high->optimum) return json;
    json["gamma_bounds"] = {std::min(best.gamma, high->optimum->gamma), std::max(best.gamma, high->optimum->gamma)};
    json["speedup"] = bracket_json(Interval{best.speedup, high->optimum->speedup});
    return json;
  }
  json["gamma"] = best.gamma;
  const GammaReplay& row = *replayed(*low, best.gamma);
  json["speedup"] = bracket_json(estimate::exactly(best.speedup), row.speedup ? row.speedup->ci95 : std::nullopt);
  if (best.near_optimal_gammas) json["near_optimal_gammas"] = *best.near_optimal_gammas;
  json["at_limit"] = best.at_limit;
  return json;
}

ordered_json position_json(const planning::PositionAcceptance& row) {
  return {{"position", row.position},
          {"unconditional", bracket_json(row.unconditional)},
          {"conditional", bracket_json(row.conditional)}};
}

ordered_json lenience_json(const planning::LenienceEstimate& row) {
  return {{"lenience", row.lenience},
          {"alpha", estimate_json(row.alpha)},
          {"tv_keep_residual", estimate_json(row.distance_strict)},
          {"tv_scaled_residual", estimate_json(row.distance_lenient)}};
}

ordered_json sweep_json(const planning::SweepRow& row) {
  const core::Standardisation& s = row.setting.standardisation;
  return {{"applies_to", name_of(row.setting.applies)},
          {"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"temperature_last", s.temperature_last},
          {"alpha", acceptance_json(row.alpha)},
          {"gamma", row.gamma ? ordered_json(*row.gamma) : ordered_json()},
          {"speedup", number_or_null(row.speedup)}};
}

/// A row of /adaptive/policies; null for what a policy lacks.
ordered_json policy_json(const std::string& name) {
  return {{"policy", name},
          {"gamma", nullptr},
          {"threshold", nullptr},
          {"at_grid_edge", nullptr},
          {"tokens_per_step", nullptr},
          {"drafted_per_step", bracket_json({})},
          {"speedup", bracket_json({})},
          {"sequences", nullptr}};
}

std::string_view verdict_name(estimate::ThresholdVerdict verdict) {
  constexpr std::array<std::string_view, 3> names = {"gains", "loses", "cannot_tell"};
  return names.at(static_cast<std::size_t>(verdict));
}

ordered_json adaptive_json(const planner::Analysis& a) {
  ordered_json policies = ordered_json::array();
  ordered_json json = {
      {"max_gamma", a.gammas.back()}, {"verdict", nullptr}, {"gain", bracket_json({})}, {"policies", policies}};
  if (!a.recording.adaptive) return json;
  const estimate::AdaptiveReport& report = *a.recording.adaptive;
  ordered_json fixed = policy_json("fixed_gamma");
  if (report.fixed) {
    fixed["gamma"] = report.fixed->gamma;
    fixed["speedup"] = bracket_json(estimate::exactly(report.fixed->speedup));
    fixed["sequences"] = report.judged_on;
  }
  policies.push_back(std::move(fixed));
  ordered_json threshold = policy_json("token_threshold");
  if (report.threshold) {
    const estimate::JudgedThreshold& judged = *report.threshold;
    threshold["gamma"] = judged.limit;
    threshold["threshold"] = judged.threshold;
    threshold["at_grid_edge"] = judged.at_grid_edge;
    threshold["tokens_per_step"] = judged.tokens_per_step;
    threshold["drafted_per_step"] = bracket_json(judged.drafted_per_step);
    threshold["speedup"] = bracket_json(judged.speedup);
    threshold["sequences"] = report.judged_on;
    json["verdict"] = verdict_name(verdict_of(judged));
    json["gain"] = bracket_json(judged.gain, judged.gain_ci95);
  }
  policies.push_back(std::move(threshold));
  json["policies"] = std::move(policies);
  return json;
}

std::string shown_name(const planning::TaskAnalysis& task) { return task.name.empty() ? "(none)" : task.name; }

ordered_json task_json(const planning::TaskAnalysis& task) {
  return {{"positions", task.positions},
          {"sequences", task.sequences},
          {"alpha", acceptance_json(task.alpha)},
          {"alpha_emitted", acceptance_json(task.alpha_emitted)},
          {"optimal", optimal_json(pointer_to(task.replay), pointer_to(task.replay_upper))}};
}

ordered_json task_row(const planning::TaskAnalysis& task) {
  ordered_json row = {{"task", shown_name(task)}};
  row.update(task_json(task));
  return row;
}

void put_tasks(ordered_json& json, const planner::Analysis& a) {
  // Keys that are added move those before them.
  ordered_json rows = ordered_json::array(), by_task = ordered_json::object();
  for (const planning::TaskAnalysis& task : a.recording.tasks) {
    rows.push_back(task_row(task));
    ordered_json& entry = by_task[shown_name(task)] = task_json(task);
    entry["gammas"] = gamma_rows(a.gammas, pointer_to(task.replay), pointer_to(task.replay_upper), task.iid);
  }
  json["tasks"] = std::move(rows);
  json["by_task"] = std::move(by_task);
}

template <class Rows, class Json>
ordered_json rows_json(const Rows& rows, const Json& json_of_row) {
  ordered_json json = ordered_json::array();
  for (const auto& row : rows) json.push_back(json_of_row(row));
  return json;
}

}  // namespace

std::map<std::string, ordered_json, std::less<>> rows_of_empty_analysis() {
  planning::SweepRow setting;
  setting.alpha.value = 0;
  planning::TaskAnalysis task;
  task.alpha.emplace().value = 0;
  task.alpha_emitted = task.alpha;
  return {{"positions", position_json({})},          {"lenience", lenience_json({})},
          {"standardisation", sweep_json(setting)},  {"tasks", task_row(task)},
          {"calibration", calibration_json("", {})}, {"adaptive", policy_json("")}};
}

ordered_json json_of(const planner::Analysis& a) {
  const TraceAnalysis& t = a.recording;
  ordered_json json = {{"partial", a.partial}, {"positions", t.positions}, {"sequences", t.sequences}};
  put_tasks(json, a);
  ordered_json& tiers = json["tiers"] = ordered_json::array();
  for (const auto& [tier, positions] : t.tiers) {
    tiers.push_back({{"tier", traces::name_of(tier)}, {"positions", positions}});
  }
  json["acceptance"] = traces::name_of(t.rule);
  json["alpha"] = acceptance_json(t.alpha);
  json["alpha_emitted"] = acceptance_json(t.alpha_emitted);
  json["alpha_by_rule"] = {{"rejection", acceptance_json(t.alpha_by_rule[0])},
                           {"greedy_draft", acceptance_json(t.alpha_by_rule[1])},
                           {"greedy", acceptance_json(t.alpha_by_rule[2])}};
  json["text_source"] = text_source_json(a);
  put_law(json, t);
  json["position_acceptance"] =
      t.replay ? rows_json(t.replay->positions, position_json) : ordered_json(ordered_json::array());
  json["gammas"] = gamma_rows(a.gammas, t.replay ? &t.replay->lower : nullptr,
                              t.replay ? pointer_to(t.replay->upper) : nullptr, t.iid);
  json["optimal"] =
      optimal_json(t.replay ? &t.replay->lower : nullptr, t.replay && t.replay->upper ? &*t.replay->upper : nullptr);
  json["lenience"] = rows_json(t.lenience, lenience_json);
  json["standardisation"] = rows_json(t.sweep, sweep_json);
  json["adaptive"] = adaptive_json(a);
  return json;
}

}  // namespace specdec::render
