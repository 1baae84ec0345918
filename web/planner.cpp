// What the page of `specdec report` computes with: the project's closed forms, cost model and sentences, compiled to
// WebAssembly. The page asks in JSON and is answered in JSON, the plan's as `specdec plan --format json` prints it.

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/planning/regret.hpp"
#include "cli/page/page_inputs.hpp"
#include "cli/plan_answer.hpp"
#include "cli/plan_points.hpp"
#include "cli/values.hpp"

namespace specdec::web {
namespace {

using cli::PlanOptions;
using nlohmann::ordered_json;

template <class Value>
void take(const ordered_json& request, const char* key, Value& target) {
  if (request.contains(key) && !request[key].is_null()) target = request[key].get<Value>();
}

template <class Value>
void take(const ordered_json& request, const char* key, std::optional<Value>& target) {
  if (request.contains(key) && !request[key].is_null()) target = request[key].get<Value>();
}

/// The keys are those of "inputs" in the output of `specdec plan`. The ones that name files are not known here; in
/// their place stand "acceptance" and "specs", as cli/page/page_inputs.hpp writes them.
PlanOptions options_of(const ordered_json& request) {
  PlanOptions o;
  take(request, "alpha", o.alpha);
  take(request, "rejection", o.rejection);
  take(request, "acceptance_length", o.acceptance_length);
  take(request, "acceptance_per_position", o.acceptance_per_position);
  take(request, "at", o.at);
  take(request, "conditional", o.conditional);
  if (request.contains("acceptance")) {
    o.known_acceptance = std::make_shared<cli::PlannedAcceptance>(cli::page_acceptance(request["acceptance"]));
  }
  take(request, "c", o.cost.c);
  take(request, "verify_factor", o.cost.verify_factor);
  take(request, "overhead", o.cost.overhead);
  take(request, "c_hat", o.c_hat);
  take(request, "draft_kind", o.draft_kind);
  take(request, "model", o.model);
  take(request, "draft_model", o.draft_model);
  take(request, "batch", o.batch);
  take(request, "context", o.context);
  take(request, "min_gain", o.min_gain);
  take(request, "gamma", o.gamma);
  take(request, "max_gamma", o.max_gamma);
  take(request, "max_num_seqs", o.max_num_seqs);
  take(request, "schedule", o.schedule);
  take(request, "max_regret", o.max_regret);
  take(request, "tokens", o.tokens);
  take(request, "tolerance", o.tolerance);
  cli::RooflineArguments& r = o.roofline;
  take(request, "hardware", r.hardware);
  take(request, "tensor_parallel_size", r.tensor_parallel);
  take(request, "draft_tensor_parallel_size", r.draft_tensor_parallel);
  take(request, "weight_dtype", r.weight_dtype);
  take(request, "draft_weight_dtype", r.draft_weight_dtype);
  take(request, "kv_cache_dtype", r.kv_cache_dtype);
  take(request, "bandwidth_efficiency", r.bandwidth_efficiency);
  take(request, "compute_efficiency", r.compute_efficiency);
  take(request, "link_efficiency", r.link_efficiency);
  take(request, "all_reduce_latency_us", r.all_reduce_latency_us);
  take(request, "launch_seconds", r.launch_seconds);
  take(request, "draft_launch_seconds", r.draft_launch_seconds);
  take(request, "layer_seconds", r.layer_seconds);
  take(request, "scheduling_seconds", r.scheduling_seconds);
  take(request, "calibrate", r.calibrate);
  if (request.contains("specs")) r.known = cli::page_specs(request["specs"]);
  return o;
}

ordered_json warnings_json(const std::vector<cli::Warning>& warnings) {
  ordered_json list = ordered_json::array();
  for (const cli::Warning& w : warnings) {
    if (!w.json_only) list.push_back({{"code", w.code}, {"message", w.message}});
  }
  return list;
}

cli::PlannedAcceptance acceptance_of(const PlanOptions& o) {
  return o.known_acceptance ? *o.known_acceptance : cli::planned(cli::stated_acceptance(o), o.acceptance);
}

cli::Deployment deployment_of(const PlanOptions& o) {
  cli::Deployment d = cli::asked_deployment(o);
  cli::PlannedDraft& draft = d.drafts.emplace_back(cli::named_draft(o));
  draft.acceptance = acceptance_of(o);
  d.engine = draft.acceptance.engine;
  if (o.roofline.hardware) {
    cli::price_by_hardware(o, o.draft_model, "--", draft, d);
  } else {
    draft.cost = cli::constant_cost(o, draft.kind, o.cost.c, "--");
  }
  cli::plan_drafts(o, {1}, d);
  cli::conclude(o, d);
  return d;
}

/// {"plan", "words", "warnings"}
ordered_json plan_of(const ordered_json& request) {
  const PlanOptions o = options_of(request);
  cli::require_consistent(o);
  ordered_json plan = ordered_json::object();
  if (o.is_closed_form()) {
    const cli::Answer answer = cli::closed_form(o);
    plan = cli::json_of(answer);
    return {{"plan", plan}, {"words", cli::words_of(answer)}, {"warnings", warnings_json(cli::warnings_of(answer))}};
  }
  const cli::Deployment d = deployment_of(o);
  cli::put_deployment(d, false, plan);
  return {{"plan", plan}, {"words", cli::words_of(d)}, {"warnings", warnings_json(d.warnings)}};
}

/// The best gamma and its speedup for every alpha and c of two lists, and of "verify_factor", "overhead" and
/// "max_gamma" as above; null where no gamma is best. Shape: gamma, speedup (c, alpha).
ordered_json map_of(const ordered_json& request) {
  const auto alphas = request.at("alphas").get<std::vector<double>>();
  const auto cs = request.at("cs").get<std::vector<double>>();
  const PlanOptions o = options_of(request);
  ordered_json gammas = ordered_json::array(), speedups = ordered_json::array();
  for (const double c : cs) {
    planning::SearchSpace space;
    space.cost = o.cost.with_c(c);
    if (o.max_gamma) space.max_gamma = *o.max_gamma;
    ordered_json gamma_row = ordered_json::array(), speedup_row = ordered_json::array();
    for (const double alpha : alphas) {
      const auto best = planning::best_gamma(core::AcceptanceProfile(core::AcceptanceRate(alpha)), space);
      gamma_row.push_back(best.attained() ? ordered_json(best.gamma) : ordered_json());
      speedup_row.push_back(best.attained() ? ordered_json(best.speedup) : ordered_json());
    }
    gammas.push_back(std::move(gamma_row));
    speedups.push_back(std::move(speedup_row));
  }
  return {{"gamma", gammas}, {"speedup", speedups}};
}

/// Regret of every gamma up to "last" for every alpha of a list. Shape: (gamma, alpha).
ordered_json regret_of(const ordered_json& request) {
  const auto alphas = request.at("alphas").get<std::vector<double>>();
  const PlanOptions o = options_of(request);
  planning::SearchSpace space;
  space.cost = o.cost.with_c(o.cost.c.value_or(0));
  if (o.max_gamma) space.max_gamma = *o.max_gamma;
  ordered_json rows = ordered_json::array();
  for (std::int64_t gamma = 0; gamma <= request.at("last").get<std::int64_t>(); ++gamma) {
    ordered_json row = ordered_json::array();
    for (const double alpha : alphas) {
      row.push_back(planning::regret(core::AcceptanceProfile(core::AcceptanceRate(alpha)), gamma, space));
    }
    rows.push_back(std::move(row));
  }
  return {{"regret", rows}};
}

/// The gamma that is recommended, its speedup and the 95% interval for every c of "cs", in its order; interval null
/// where acceptance is stated alone.
ordered_json over_c(const ordered_json& request) {
  PlanOptions o = options_of(request);
  ordered_json gammas = ordered_json::array(), speedups = ordered_json::array(), intervals = ordered_json::array();
  for (const ordered_json& c : request.at("cs")) {
    o.cost.c = c.get<double>();
    if (o.is_closed_form()) {
      const cli::Answer answer = cli::closed_form(o);
      const std::optional<planning::PlanRow>& best = answer.plan.recommended;
      gammas.push_back(best ? ordered_json(best->gamma) : ordered_json());
      speedups.push_back(best ? ordered_json(best->speedup) : ordered_json());
      intervals.push_back(nullptr);
      continue;
    }
    const cli::Deployment d = deployment_of(o);
    const planning::DeploymentRow& best = d.points().front().optimal();
    gammas.push_back(best.gamma);
    speedups.push_back(best.speedup);
    intervals.push_back({best.speedup_ci95.lo, best.speedup_ci95.hi});
  }
  return {{"gamma", gammas}, {"speedup", speedups}, {"ci95", intervals}};
}

/// Names of the presets that the controls offer.
ordered_json presets_of(const ordered_json&) {
  ordered_json hardware = ordered_json::array(), models = ordered_json::array();
  for (const cost::HardwareSpec& spec : cost::hardware_presets()) hardware.push_back(spec.name);
  for (const cost::ModelSpec& spec : cost::model_presets()) models.push_back(spec.name);
  return {{"hardware", hardware}, {"models", models}};
}

/// Of one request; what is wrong with it is {"error"}.
std::string answered(ordered_json (*answer)(const ordered_json&), const char* request) {
  ordered_json result;
  try {
    result = answer(ordered_json::parse(request));
  } catch (const std::exception& error) {
    result = {{"error", error.what()}};
  }
  return result.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Lives until the next request.
const char* kept(std::string answer) {
  static std::string last;
  last = std::move(answer);
  return last.c_str();
}

}  // namespace
}  // namespace specdec::web

extern "C" {

const char* specdec_plan(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::plan_of, request));
}

const char* specdec_map(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::map_of, request));
}

const char* specdec_regret(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::regret_of, request));
}

const char* specdec_over_c(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::over_c, request));
}

const char* specdec_presets(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::presets_of, request));
}

}  // extern "C"
