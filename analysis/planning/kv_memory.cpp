#include "analysis/planning/kv_memory.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

constexpr std::int64_t largest_division = 1024;
/// For a model without a cache.
constexpr double most_tokens = 1e15;

/// States of linear and recurrent layers of one sequence, per accelerator; they are divided like the heads.
double state_bytes(const cost::PlacedModel& placed) {
  return cost::cache_bytes(placed.model, 0, cost::stored_bits(placed.cache_type) / 8) /
         static_cast<double>(placed.tensor_parallel);
}

}  // namespace

double usual_reserve(const ReplicaHolds& holds) {
  constexpr double of_groups = 0.37 * 1024 * 1024 * 1024, of_activations = 4.7 * 2, of_logits = 5.3 * 4;
  const cost::ModelSpec& model = holds.target.model;
  const auto width = static_cast<double>(model.width);
  const auto accelerators = static_cast<double>(holds.target.accelerators());
  double values = width;
  for (const cost::LayerGroup& layer : model.layers) {
    if (layer.experts == 0) continue;
    // Two projections of the width into an expert's own, and one back.
    const double inner = static_cast<double>(layer.parameters_per_expert) / (3 * width);
    values = std::max(values,
                      width + static_cast<double>(layer.experts_per_token) * std::max(width, 2 * inner / accelerators));
  }
  return (accelerators > 1 ? of_groups : 0) +
         of_activations * static_cast<double>(holds.max_num_batched_tokens) * values +
         of_logits * static_cast<double>(holds.max_num_seqs) * static_cast<double>(model.vocabulary);
}

KvMemory kv_memory(const ReplicaHolds& holds) {
  core::require_in("kv_memory", "memory_bytes_per_gpu", holds.memory_bytes_per_gpu, core::least_positive,
                   core::largest_double);
  core::require_in("kv_memory", "utilization", holds.utilization, core::least_positive, 1.0);
  if (holds.reserve_bytes_per_gpu)
    core::require_in("kv_memory", "reserve_bytes_per_gpu", *holds.reserve_bytes_per_gpu, 0.0, core::largest_double);
  core::require_in("kv_memory", "block_size", holds.block_size, 1, std::int64_t{1} << 49);
  core::require_in("kv_memory", "max_num_seqs", holds.max_num_seqs, 1, std::int64_t{1} << 32);
  core::require_in("kv_memory", "max_num_batched_tokens", holds.max_num_batched_tokens, 1, std::int64_t{1} << 49);

  KvMemory memory;
  memory.reserve_bytes = holds.reserve_bytes_per_gpu ? *holds.reserve_bytes_per_gpu : usual_reserve(holds);
  memory.usable_bytes = holds.memory_bytes_per_gpu * holds.utilization - memory.reserve_bytes;
  memory.target_weight_bytes = cost::weight_bytes_per_gpu(holds.target);
  memory.bytes_per_token = cost::cache_bytes_per_token_per_gpu(holds.target);
  memory.state_bytes = state_bytes(holds.target);
  if (holds.draft) {
    memory.draft_weight_bytes = cost::weight_bytes_per_gpu(*holds.draft);
    memory.bytes_per_token += cost::cache_bytes_per_token_per_gpu(*holds.draft);
    memory.state_bytes += state_bytes(*holds.draft);
  }
  memory.state_bytes *= static_cast<double>(holds.max_num_seqs);
  memory.cache_bytes =
      memory.usable_bytes - memory.target_weight_bytes - memory.draft_weight_bytes - memory.state_bytes;
  const double block_bytes = static_cast<double>(holds.block_size) * memory.bytes_per_token;
  const double most_blocks = std::floor(most_tokens / static_cast<double>(holds.block_size));
  const double blocks = block_bytes > 0 ? std::floor(memory.cache_bytes / block_bytes) : most_blocks;
  memory.blocks = memory.cache_bytes > 0 ? static_cast<std::int64_t>(std::clamp(blocks, 0.0, most_blocks)) : 0;
  memory.tokens = memory.blocks * holds.block_size;
  return memory;
}

std::int64_t lookahead_tokens(std::int64_t sequences, std::int64_t gamma) {
  core::require_in("lookahead_tokens", "sequences", sequences, 0, std::int64_t{1} << 32);
  core::require_in("lookahead_tokens", "gamma", gamma, 0, std::int64_t{1} << 20);
  return sequences * (gamma + 1);
}

std::optional<std::int64_t> gpus_that_hold(const ReplicaHolds& holds) {
  ReplicaHolds divided = holds;
  divided.target.data_parallel = divided.target.expert_parallel = 1;
  if (holds.draft) divided.draft->data_parallel = divided.draft->expert_parallel = 1;
  for (std::int64_t gpus = 1; gpus <= largest_division; gpus *= 2) {
    divided.target.tensor_parallel = gpus;
    if (holds.draft) {
      const std::int64_t drafting = holds.draft->tensor_parallel;
      divided.draft->tensor_parallel =
          drafting == holds.target.tensor_parallel ? gpus : std::min<std::int64_t>(drafting, gpus);
    }
    if (kv_memory(divided).blocks > 0) return gpus;
  }
  return std::nullopt;
}

}  // namespace specdec::planning
