#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "traces/trace_metadata.hpp"

/// A planned schedule in the words of the serving engines.
namespace specdec::planning {

enum class Engine { vllm, sglang, trtllm, llamacpp };

/// "vllm", "sglang", "trtllm", "llamacpp".
std::string_view name_of(Engine engine);
std::optional<Engine> engine_named(std::string_view name);

/// One gamma at every batch, for engines that take no schedule.
struct FixedGamma {
  std::int64_t gamma = 0;
  /// The largest share of a planned point's best speedup that it gives away, [0, 1], and the batch where it does.
  double worst_regret = 0;
  double worst_batch = 1;
};

/// The gamma whose largest regret over the points of a plan is least, the smallest one of ties; 0 where no gamma is
/// known at every point.
/// @throws std::invalid_argument if the plan has no points
FixedGamma least_regret_gamma(const DraftPlan& plan);

struct EngineRequest {
  /// Rising, from batch 1 on, without gaps or overlap.
  std::vector<ScheduleStretch> schedule;
  FixedGamma fixed;
  /// The acceptance rule that the plan assumed; nothing leaves the engine's default.
  std::optional<traces::AcceptanceRule> rule;
  /// Stand in the text as TARGET and DRAFT where empty.
  std::string target_model, draft_model;
  cost::DraftKind kind = cost::DraftKind::model;
  /// GPUs that the draft is spread over, >= 1.
  std::optional<std::int64_t> draft_tensor_parallel;
};

/// The configuration for one range of releases.
struct EngineVariant {
  /// The releases that it fits, in words.
  std::string releases;
  /// What stands in a file: JSON for vLLM, YAML for TensorRT-LLM, command-line options for the others, one a line.
  /// Empty where nothing is to be drafted.
  std::string text;
  /// A command that starts the server with it; FILE stands for a file that holds `text`.
  std::string command;
};

struct EngineConfig {
  Engine engine = Engine::vllm;
  /// The newest releases first; the older ones differ in names or in the direction of the schedule.
  std::vector<EngineVariant> variants;
  /// What the engine does at each batch with it: the schedule, or as near as it can.
  std::vector<ScheduleStretch> runs;
  /// What is lost or to be seen to, one sentence each.
  std::vector<std::string> notes;
};

/// The configuration that makes an engine follow a schedule:
///
///   vllm      --speculative-config with num_speculative_tokens_per_batch_size [[low, high, gamma], ...]
///   trtllm    draft_len_schedule, whose keys are the upper ends of the ranges (older releases: the lower ends)
///   sglang    one chain of the fixed gamma: num_steps = gamma, eagle_topk = 1, num_draft_tokens = gamma + 1
///   llamacpp  one draft length, the fixed gamma
///
/// Source:   the engines' own option descriptions; docs/cli.md#configuration-for-an-engine
/// @throws std::invalid_argument if the schedule is empty, has gaps or does not begin at batch 1, or if the engine has
///   no options for this kind of draft
EngineConfig engine_config(Engine engine, const EngineRequest& request);

}  // namespace specdec::planning
