#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/planning/deployment_plan.hpp"
#include "planner/plan.hpp"

namespace specdec::planner {

/// Tokens per request, means.
struct PromptLengths {
  double prompt = 0, output = 0;
};

/// How the server `engine` (empty: vllm) is told the model that is asked for by `name`; the name itself where it would
/// not know it.
std::string served_name(std::string_view engine, const std::string& name);

/// How the server `engine` (empty: vllm) is told what the next measurement drafts: "with num_speculative_tokens 3",
/// "with
/// --spec-draft-n-max 3, and once without speculation", "without speculation".
std::string server_setting(std::string_view engine, const planning::NextMeasurement& next);

/// "vllm bench serve ..." or what else measures it.
/// @param engine  empty: vllm   @param model  empty: "MODEL"
/// @param lengths  of random prompts; empty: the benchmark's own
std::string benchmark_command(std::string_view engine, std::string_view model, const planning::NextMeasurement& next,
                              const std::optional<PromptLengths>& lengths = {});
std::string benchmark_command(const Plan& plan, const planning::NextMeasurement& next);
/// The same of the run to buy next, with the lengths of the runs nearest to its context where they have several.
/// @param plan  with next_run
std::string next_run_command(const Plan& plan);

}  // namespace specdec::planner
