// What the page of `specdec report` computes with: the project's closed forms, cost model and sentences, compiled to
// WebAssembly. The page asks in JSON and is answered in JSON, the plan's as `specdec plan --format json` prints it.

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/planning/regret.hpp"
#include "cli/planned.hpp"
#include "cli/stated_acceptance.hpp"
#include "cli/values.hpp"
#include "render/page/page_inputs.hpp"
#include "render/plan.hpp"

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
/// their place stand "acceptance" and "specs", as render/page/page_inputs.hpp writes them.
PlanOptions options_of(const ordered_json& request) {
  PlanOptions o;
  take(request, "alpha", o.alpha);
  take(request, "rejection", o.rejection);
  take(request, "acceptance_length", o.acceptance_length);
  take(request, "acceptance_per_position", o.acceptance_per_position);
  take(request, "at", o.at);
  take(request, "rounds", o.rounds);
  take(request, "conditional", o.conditional);
  if (request.contains("acceptance")) {
    o.known_acceptance = std::make_shared<planner::Acceptance>(render::page_acceptance(request["acceptance"]));
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
  if (request.contains("specs")) r.known = render::page_specs(request["specs"]);
  return o;
}

ordered_json warnings_json(const std::vector<Note>& warnings) {
  ordered_json list = ordered_json::array();
  for (const Note& w : warnings) {
    if (!w.explains_null) list.push_back({{"code", w.code}, {"message", w.message}});
  }
  return list;
}

/// The plan of one draft, with the acceptance of the report or a stated one.
planner::Plan plan_asked_for(const PlanOptions& o) {
  const planner::Acceptance acceptance = o.known_acceptance ? *o.known_acceptance : cli::stated_acceptance(o);
  return planner::plan(acceptance, cli::cost_of_models(o, cli::draft_words(o)), cli::question_of(o));
}

/// {"plan", "words", "warnings"}
ordered_json plan_of(const ordered_json& request) {
  const PlanOptions o = options_of(request);
  cli::require_consistent(o);
  const planner::Plan plan = plan_asked_for(o);
  return {
      {"plan", render::json_of(plan)}, {"words", render::words_of(plan)}, {"warnings", warnings_json(plan.warnings)}};
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
    space.cost = o.cost.times().with_c(c);
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

/// Regret of every gamma up to "last" for every alpha of a list, against the best of all gammas. Shape: (gamma, alpha).
ordered_json regret_of(const ordered_json& request) {
  const auto alphas = request.at("alphas").get<std::vector<double>>();
  const PlanOptions o = options_of(request);
  planning::SearchSpace space;
  space.cost = o.cost.times().with_c(o.cost.c.value_or(0));
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
    const planner::Plan plan = plan_asked_for(o);
    if (plan.closed_form) {
      const std::optional<planning::PlanRow>& best = plan.closed_form->plan.recommended;
      gammas.push_back(best ? ordered_json(best->gamma) : ordered_json());
      speedups.push_back(best ? ordered_json(best->speedup) : ordered_json());
      intervals.push_back(nullptr);
      continue;
    }
    const planning::DeploymentRow* const best = plan.points().front().optimal();
    gammas.push_back(best ? ordered_json(best->gamma) : ordered_json());
    speedups.push_back(best ? ordered_json(best->speedup) : ordered_json());
    intervals.push_back(best ? ordered_json{best->speedup_ci95.lo, best->speedup_ci95.hi} : ordered_json());
  }
  return {{"gamma", gammas}, {"speedup", speedups}, {"ci95", intervals}};
}

/// Names of the presets that the controls offer.
ordered_json presets_of(const ordered_json&) {
  ordered_json hardware = ordered_json::array(), models = ordered_json::array();
  for (const cost::HardwareSpec& spec : cost::hardware_presets()) hardware.push_back(spec.name);
  for (const cost::ModelSpec& spec : cost::model_presets()) {
    if (has_shape(spec)) models.push_back(spec.name);
  }
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
