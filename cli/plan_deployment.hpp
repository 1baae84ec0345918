#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/roofline_cost.hpp"
#include "analysis/planning/bench_plan.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "cli/plan_acceptance.hpp"
#include "cli/plan_options.hpp"
#include "cli/report.hpp"

/// The part of `specdec plan` that goes over batches, contexts and drafts: plan_deployment.cpp reads files,
/// plan_points.cpp asks the library, plan_deployment_json.cpp and plan_deployment_text.cpp print.
namespace specdec::cli {

/// What the options and files say of one draft.
struct PlannedDraft {
  std::string name;
  PlannedAcceptance acceptance;
  std::shared_ptr<const cost::RoundCost> cost;
  /// The same where --hardware prices it.
  std::shared_ptr<const cost::RooflineCost> roofline;
  cost::DraftKind kind = cost::DraftKind::model;
  std::string draft_model;
  std::optional<std::int64_t> tensor_parallel;
};

struct Deployment {
  /// As many as the plan has; none where benchmark runs bring their own acceptance.
  std::vector<PlannedDraft> drafts;
  planning::DeploymentPlan plan;
  /// The same where rounds that were taken as independent count a third; nothing where none were.
  std::optional<planning::DeploymentPlan> at_design_effect_3;
  std::optional<planning::BenchPlan> bench;
  std::string target_model;
  double min_gain = default_min_gain;
  /// Times are seconds.
  bool in_seconds = false;
  /// The largest gamma compared.
  std::int64_t max_gamma = usual_max_gamma;
  /// What is in use, where that was said.
  std::vector<planning::ScheduleStretch> deployed;
  std::optional<planning::EngineConfig> config;
  /// The server that the next run is made of: --emit's, else that of runs, logs, counters or timings, in this order, as
  /// these name it.
  std::optional<std::string> engine;
  /// Rounds were priced by the windows of a log, so that nothing else is said of the cost.
  bool cost_from_log = false;
  std::vector<std::string> files;
  /// What those of --hardware, --model and --draft-model describe.
  NamedSpecs specs;
  std::vector<nlohmann::ordered_json> presets;
  /// About the cost, where --hardware prices it.
  std::vector<Assumption> cost_assumptions;
  std::vector<Warning> warnings;

  /// The draft whose points are shown: the recommended one, else the first.
  std::size_t shown() const { return plan.recommended_draft.value_or(0); }
  const planning::DraftPlan& shown_plan() const { return plan.drafts[shown()]; }
  const std::vector<planning::PointPlan>& points() const { return shown_plan().points; }
  bool has_roofline() const { return !drafts.empty() && drafts[shown()].roofline != nullptr; }
  /// Of the draft that is shown.
  const cost::RoundCost& cost() const { return bench ? *bench->cost : *drafts[shown()].cost; }
};

/// @throws UsageError, traces::FileError, std::domain_error
Deployment planned_deployment(const PlanOptions& o);

/// The rounds of one draft, from --cost and what goes with it.
/// @throws UsageError, traces::FileError
std::shared_ptr<const cost::RoundCost> priced_rounds(const PlanOptions& o, cost::DraftKind kind, Deployment& d);

/// What bounds the target's pass of a round: "weights", "cache", ...; nothing where --hardware does not price it.
std::optional<std::string_view> bound_of(const Deployment& d, const planning::PointPlan& point, std::int64_t gamma);
/// What servers call the model of a preset, else `name`.
std::string served_name(const cost::ModelSpec& model, const std::string& name);
/// Tokens per request, means.
struct PromptLengths {
  double prompt = 0, output = 0;
};
/// "vllm bench serve ..." or what else measures it.
/// @param engine  empty: vllm   @param model  empty: "MODEL"
/// @param lengths  of random prompts; nothing: the benchmark's own
std::string command_for(std::string_view engine, std::string_view model, const planning::NextMeasurement& next,
                        const std::optional<PromptLengths>& lengths);
std::string command_for(const Deployment& d, const planning::NextMeasurement& next);
/// A command on lines of their own, broken before options where it is long.
std::string command_lines(const std::string& command);
std::string_view name_of(planning::Verdict verdict);
std::string_view name_of(planning::UncertaintySource source);

/// Fills in the keys of the JSON output that speak of points.
/// @param has_closed_form  the keys of the closed form are there already
void put_deployment(const Deployment& d, bool has_closed_form, nlohmann::ordered_json& json);
/// The same keys where there is no answer.
void put_no_deployment(nlohmann::ordered_json& json);
std::string text_of(const Deployment& d);
/// The answer in sentences, without tables, configuration and next measurements: a paragraph each, verdicts first.
std::vector<std::string> words_of(const Deployment& d);

}  // namespace specdec::cli
