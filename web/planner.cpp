// The computations of the page of `specdec report`: the project's closed forms, cost model and sentences, compiled to
// WebAssembly. The page asks in JSON, planner::PlanRequest's, and is answered in JSON, the plan's as
// `specdec plan --format json` prints it.

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan_request.hpp"
#include "planner/question_error.hpp"
#include "render/plan.hpp"

namespace specdec::web {
namespace {

using nlohmann::ordered_json;
using planner::CostWords;
using planner::PlanRequest;

ordered_json warnings_json(const std::vector<Note>& warnings) {
  ordered_json list = ordered_json::array();
  for (const Note& w : warnings) {
    if (!w.explains_null) list.push_back({{"code", w.code}, {"message", w.message}});
  }
  return list;
}

/// {"plan", "warnings"} of a PlanRequest; the words are those of the plan's decision.
ordered_json plan_of(const ordered_json& request) {
  const planner::Plan plan = planner::plan(request.get<PlanRequest>());
  return {{"plan", render::json_of(plan)}, {"warnings", warnings_json(plan.warnings)}};
}

/// "cost" with the verification factor and the overhead alone, and a largest gamma where "max_gamma" says it.
planning::SearchSpace space_of(const ordered_json& request, double c) {
  planning::SearchSpace space;
  space.cost = request.at("cost").get<CostWords>().times.with_c(c);
  if (request.contains("max_gamma")) space.max_gamma = request["max_gamma"].get<std::int64_t>();
  return space;
}

core::AcceptanceProfile profile_of(double alpha) { return core::AcceptanceProfile(core::AcceptanceRate(alpha)); }

/// The best gamma and its speedup for every alpha and c of the lists "alphas" and "cs", with space_of; null where no
/// gamma is best. Shape: gamma, speedup (c, alpha).
ordered_json map_of(const ordered_json& request) {
  const auto alphas = request.at("alphas").get<std::vector<double>>();
  ordered_json gammas = ordered_json::array(), speedups = ordered_json::array();
  for (const double c : request.at("cs").get<std::vector<double>>()) {
    const planning::SearchSpace space = space_of(request, c);
    ordered_json gamma_row = ordered_json::array(), speedup_row = ordered_json::array();
    for (const double alpha : alphas) {
      const auto best = planning::best_gamma(profile_of(alpha), space);
      gamma_row.push_back(best.attained() ? ordered_json(best.gamma) : ordered_json());
      speedup_row.push_back(best.attained() ? ordered_json(best.speedup) : ordered_json());
    }
    gammas.push_back(std::move(gamma_row));
    speedups.push_back(std::move(speedup_row));
  }
  return {{"gamma", gammas}, {"speedup", speedups}};
}

/// The gamma that is recommended, its speedup and the 95% interval for every c of "cs", in its order, of "request", a
/// PlanRequest; interval null where nothing is uncertain.
ordered_json over_c(const ordered_json& asked) {
  auto request = asked.at("request").get<PlanRequest>();
  ordered_json gammas = ordered_json::array(), speedups = ordered_json::array(), intervals = ordered_json::array();
  for (const ordered_json& c : asked.at("cs")) {
    request.cost.times.c = c.get<double>();
    const planner::Plan plan = planner::plan(request);
    const planning::DeploymentRow& best = plan.points().front().optimal();
    gammas.push_back(best.gamma);
    speedups.push_back(best.speedup);
    const bool has_interval = best.speedup_ci95.lo < best.speedup_ci95.hi;
    intervals.push_back(has_interval ? ordered_json{best.speedup_ci95.lo, best.speedup_ci95.hi} : ordered_json());
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

/// The answer to one request; what is wrong with it is {"error"}, where parameters are named as members.
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

const char* specdec_over_c(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::over_c, request));
}

const char* specdec_presets(const char* request) {
  return specdec::web::kept(specdec::web::answered(specdec::web::presets_of, request));
}

}  // extern "C"
