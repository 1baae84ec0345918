#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/round_cost.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/serving_engine.hpp"
#include "traces/trace_metadata.hpp"

/// A planned schedule in the configuration formats of the serving engines.
namespace specdec::planning {

struct EngineRequest {
  /// In increasing order, from batch 1 on, without gaps or overlap.
  std::vector<PlannedStretch> schedule;
  /// What is drafted where gamma is above 0, then its depth; a chain if it is empty.
  std::optional<cost::DraftTree> tree = {};
  /// The acceptance rule that the plan assumed; if empty, the engine's default is kept.
  std::optional<traces::AcceptanceRule> rule;
  /// In the form that the engine takes: served_model(). An empty one becomes the placeholder <TARGET> or <DRAFT>.
  std::string target_model, draft_model;
  cost::DraftKind kind = cost::DraftKind::model;
  /// Number of GPUs that the models are spread over, >= 1.
  std::optional<std::int64_t> tensor_parallel, draft_tensor_parallel;
  /// GPUs of one machine, >= 1; if the target is spread over more, every machine starts its part. Empty: enough.
  std::optional<std::int64_t> gpus_per_node;
  /// Number types that the plan assumed, if they differ from the model's own.
  std::optional<cost::NumberType> weight_type, draft_weight_type, cache_type;
  /// The largest number of sequences that the server is to decode together.
  std::optional<std::int64_t> max_num_seqs;
  /// Tokens of the longest request, where the cache has no room for one of the model's own length, > 0.
  std::optional<std::int64_t> max_model_len;
  /// Tokens of a cache that all sequences share, > 0; if empty, what the engine takes by itself.
  std::optional<std::int64_t> cache_tokens;
  /// The name that the command uses for the file with the text.
  std::string file = "FILE";
};

struct EngineConfig {
  Engine engine = Engine::vllm;
  /// As in the request.
  std::string file;
  /// The contents of the file: JSON for vLLM and for a schedule of SGLang, YAML for TensorRT-LLM, else command-line
  /// options, one per line. Empty if nothing is to be drafted.
  std::string text;
  /// A command that starts the server with it. On several machines it has the placeholders <RANK> and <ADDRESS>.
  std::string command;
  /// Losses and points that need attention, one sentence each.
  std::vector<std::string> notes;
  /// The reason why the engine would reject the text: it is empty or holds a placeholder. Empty if it would not.
  std::string not_to_be_written;
};

/// What a schedule costs the newest_release() of an engine, and what it cannot have:
///
///   vllm      costs nothing, but one length for draft models, which draft the longest at every batch, and suffixes;
///             no stretch without drafts, at which its throughput collapsed
///   sglang    costs nothing for heads (eagle, mtp); one length for all batches otherwise
///   trtllm    the longest drafts first; no stretch without drafts, after which acceptance collapsed
///   llamacpp  one length for all batches
///
/// Source:   vLLM 0.33.0 (config/vllm.py, v1/worker/gpu/spec_decode) and its issues 49548 and 49986, TensorRT-LLM's
///           issue 16888; the engines' own option descriptions
worlds::SchedulePrices schedule_prices(Engine engine, cost::DraftKind kind);

/// A demand of the request for which the engine has no option, a sentence without its full stop; empty if there is none.
std::string lacks_option(Engine engine, const EngineRequest& request);

/// The configuration that makes the newest_release() of an engine follow a schedule:
///
///   vllm      --speculative-config with num_speculative_tokens_per_batch_size [[low, high, gamma], ...]
///   trtllm    draft_len_schedule, whose keys are the upper ends of the ranges
///   sglang    of heads (eagle, mtp) the file of --speculative-adaptive-config, low -> {"candidate_steps": [gamma]},
///             and CUDA graphs that end where the ranges do, since it looks the gamma of a padded batch up; of one
///             gamma num_steps = gamma, eagle_topk = 1, num_draft_tokens = gamma + 1, or the tree
///   llamacpp  one draft length
///
/// It covers the batches that have a price. At the others vLLM and SGLang continue with the batch below, TensorRT-LLM
/// drafts nothing above the last key, and an engine without a schedule drafts one length everywhere. A note says what
/// the engine does above the last batch where no max_num_seqs limits the server.
///
/// Source:   the engines' own option descriptions; docs/reference/formats.md#configuration-for-an-engine
/// @throws std::invalid_argument if the schedule is empty, has gaps, does not begin at batch 1 or is one that
///   schedule_prices() rules out, or if lacks_option()
EngineConfig engine_config(Engine engine, const EngineRequest& request);

}  // namespace specdec::planning
