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

KvMemory kv_memory(const ReplicaHolds& holds) {
  core::require_in("kv_memory", "memory_bytes_per_gpu", holds.memory_bytes_per_gpu, core::least_positive,
                   core::largest_double);
  core::require_in("kv_memory", "utilization", holds.utilization, core::least_positive, 1.0);
  core::require_in("kv_memory", "reserve_bytes_per_gpu", holds.reserve_bytes_per_gpu, 0.0, core::largest_double);
  core::require_in("kv_memory", "block_size", holds.block_size, 1, std::int64_t{1} << 49);
  core::require_in("kv_memory", "max_num_seqs", holds.max_num_seqs, 1, std::int64_t{1} << 32);

  KvMemory memory;
  memory.usable_bytes = holds.memory_bytes_per_gpu * holds.utilization - holds.reserve_bytes_per_gpu;
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
