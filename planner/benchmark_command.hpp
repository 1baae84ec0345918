#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/serving_engine.hpp"
#include "planner/plan.hpp"

namespace specdec::planner {

/// Mean tokens per request.
struct PromptLengths {
  double prompt = 0, output = 0;
};

/// That of the plan's counts or runs, or vLLM.
planning::Engine engine_of(const Plan& plan);

/// The name by which the server `engine` knows the model called `name`; `name` itself if the server would
/// not know it.
std::string served_name(planning::Engine engine, const std::string& name);

/// The server setting of `engine` for the drafts of the next measurement: "with
/// num_speculative_tokens 3", "with --spec-draft-n-max 3, and once without speculation", "without speculation".
std::string server_setting(planning::Engine engine, const planning::NextMeasurement& next, cost::DraftKind kind);

/// Lengths of requests that have so many tokens in the cache halfway through the output. @param context  >= 2
PromptLengths lengths_around(double context);

/// "vllm bench serve ..." or another command that measures it. Prompts are the user's own, "PROMPTS", since random ones
/// do not determine acceptance.
/// @param model  empty: "MODEL"
/// @param lengths  those of the prompts and of the outputs, where they matter
std::string benchmark_command(planning::Engine engine, std::string_view model, const planning::NextMeasurement& next,
                              const std::optional<PromptLengths>& lengths = {});
/// The same for a point of a plan, with prompts around its context where hardware prices rounds.
std::string benchmark_command(const Plan& plan, const planning::NextMeasurement& next);
/// The command for the next run, with the lengths of the runs nearest to its context if they have several.
/// @param plan  with next_run
std::string next_run_command(const Plan& plan);

}  // namespace specdec::planner
