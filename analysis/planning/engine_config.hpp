#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
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
  /// The least of its speedups over plain decoding, and the batch where that is.
  double least_speedup = 1;
  double slowest_batch = 1;
};

/// The gamma whose largest regret is least over the points of a plan that are decided, of those that are known at all
/// of these, the smallest one of ties.
/// @param extrapolate  as in DeploymentQuestion
/// @return nothing where no point is decided
std::optional<FixedGamma> least_regret_gamma(const DraftPlan& plan, bool extrapolate);

struct EngineRequest {
  /// Rising, from batch 1 on, without gaps or overlap.
  std::vector<PlannedStretch> schedule;
  /// Configure the batches that are extrapolated, too.
  bool extrapolate = false;
  FixedGamma fixed;
  /// The acceptance rule that the plan assumed; nothing leaves the engine's default.
  std::optional<traces::AcceptanceRule> rule;
  /// As the engine takes them: served_model(). Where empty a gap is marked, <TARGET> or <DRAFT>.
  std::string target_model, draft_model;
  cost::DraftKind kind = cost::DraftKind::model;
  /// GPUs that the models are spread over, >= 1.
  std::optional<std::int64_t> tensor_parallel, draft_tensor_parallel;
  /// GPUs of one machine, >= 1; where the target is spread over more, every machine starts its part. Nothing: enough.
  std::optional<std::int64_t> gpus_per_node;
  /// Number types that the plan assumed where they are not the model's own.
  std::optional<cost::NumberType> weight_type, draft_weight_type, cache_type;
  /// The most sequences that the server is to decode together.
  std::optional<std::int64_t> max_num_seqs;
  /// How the commands name the file that holds the text of a variant.
  std::string file = "FILE";
};

/// The configuration for one range of releases.
struct EngineVariant {
  /// The releases that it fits, in words.
  std::string releases;
  /// What stands in a file: JSON for vLLM, YAML for TensorRT-LLM, command-line options for the others, one a line.
  /// Empty where nothing is to be drafted.
  std::string text;
  /// A command that starts the server with it. On several machines it has the gaps <RANK> and <ADDRESS>.
  std::string command;
};

struct EngineConfig {
  Engine engine = Engine::vllm;
  /// As in the request.
  std::string file;
  /// The newest releases first; the older ones differ in names or in the direction of the schedule.
  std::vector<EngineVariant> variants;
  /// What the engine drafts at each batch with the first of them: the schedule, or as near as it can; held where
  /// nothing is decided.
  std::vector<ScheduleStretch> runs;
  /// What is lost or to be seen to, one sentence each.
  std::vector<std::string> notes;
  /// Why the engine would not take the texts as they are: they are empty, or hold a gap. Empty where it would.
  std::string not_to_be_written;
};

/// The configuration that makes an engine follow a schedule:
///
///   vllm      --speculative-config with num_speculative_tokens_per_batch_size [[low, high, gamma], ...]
///   trtllm    draft_len_schedule, whose keys are the upper ends of the ranges (older releases: the lower ends, and
///             one draft length for heads)
///   sglang    one chain of the fixed gamma: num_steps = gamma, eagle_topk = 1, num_draft_tokens = gamma + 1
///   llamacpp  one draft length, the fixed gamma
///
/// It covers the batches whose schedule is decided: by the estimates, and a note names those of which the intervals do
/// not tell whether drafts gain enough. At the others vLLM goes on with the batch below, TensorRT-LLM drafts nothing
/// above the last key, and the others draft one length everywhere; both schedules have to begin at batch 1, where the
/// first gamma is written if nothing is decided. `runs` and the notes say so.
///
/// Source:   the engines' own option descriptions; docs/cli.md#configuration-for-an-engine
/// @throws std::invalid_argument if the schedule is empty, has gaps or does not begin at batch 1, if nothing is decided
///   at any batch, or if the engine has no options for this kind of draft or for its number of GPUs
EngineConfig engine_config(Engine engine, const EngineRequest& request);

}  // namespace specdec::planning
