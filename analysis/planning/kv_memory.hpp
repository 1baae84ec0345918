#pragma once

#include <cstdint>
#include <optional>

#include "analysis/cost/roofline_cost.hpp"

/// What the memory of a replica's accelerators has room for.
namespace specdec::planning {

/// What a replica has to hold. The target's tensor_parallel is the number of accelerators of the replica.
struct ReplicaHolds {
  /// Of one accelerator, > 0.
  double memory_bytes_per_gpu = 0;
  /// Share of it that the engine takes, (0, 1].
  double utilization = 0.9;
  /// Kept free of that for activations, captured graphs and buffers, bytes per accelerator, >= 0.
  double reserve_bytes_per_gpu = 0;
  cost::PlacedModel target = {};
  /// Nothing where nothing drafts, or drafts have no weights.
  std::optional<cost::PlacedModel> draft = {};
  /// Tokens per block of the cache, [1, 2^49]; a whole batch's where the question is whether that fits.
  std::int64_t block_size = 16;
  /// Sequences that may run together, >= 1: states of linear and recurrent layers are held for each.
  std::int64_t max_num_seqs = 1;
};

/// Bytes are those of one accelerator, the fullest where the draft is on fewer of them than the target.
struct KvMemory {
  /// memory_bytes_per_gpu utilization - reserve_bytes_per_gpu
  double usable_bytes = 0;
  double target_weight_bytes = 0;
  double draft_weight_bytes = 0;
  /// Of max_num_seqs sequences, whatever their length.
  double state_bytes = 0;
  /// What is left of usable_bytes for the cache; below 0 where the rest does not fit.
  double cache_bytes = 0;
  /// Of the target and of the draft.
  double bytes_per_token = 0;
  /// floor(cache_bytes / (block_size bytes_per_token)), at least 0, and the tokens in so many.
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;
};

/// Tokens that the caches of target and draft have room for beside the weights:
///
///   tokens = (memory utilization - reserve - W_p - W_q - states) / (kv_p + kv_q),   in whole blocks
///
/// Source:   docs/capacity.md#memory
/// Assumes:  windows free no memory (an engine without a hybrid cache keeps all tokens of all layers).
/// @throws std::domain_error if a value is outside its range
KvMemory kv_memory(const ReplicaHolds& holds);

/// Cache positions that the rounds of `sequences` write beyond what they keep: gamma drafts and the token they follow.
///
///   sequences (gamma + 1)
///
/// @param sequences  >= 0  @param gamma  >= 0
/// @throws std::domain_error if a value is outside its range
std::int64_t lookahead_tokens(std::int64_t sequences, std::int64_t gamma);

/// The fewest accelerators, a power of two from 1 to 1024, over which the replica could be divided so that every one of
/// them has room for a block of the cache; a draft that is divided as the target is stays so.
/// @return nothing where 1024 do not do
std::optional<std::int64_t> gpus_that_hold(const ReplicaHolds& holds);

}  // namespace specdec::planning
