#pragma once

#include <cstdint>
#include <optional>

#include "analysis/cost/roofline_cost.hpp"

/// Capacity of the memory of a replica's accelerators.
namespace specdec::planning {

/// The contents of a replica's memory; with the target's data_parallel, those of each of its groups, which serve
/// sequences of their own.
struct ReplicaHolds {
  /// Memory of one accelerator, > 0.
  double memory_bytes_per_gpu = 0;
  /// Share of it that the engine uses, (0, 1].
  double utilization = 0.9;
  /// Part of that which activations and buffers take, bytes per accelerator, >= 0; empty: usual_reserve.
  std::optional<double> reserve_bytes_per_gpu = {};
  cost::PlacedModel target = {};
  /// Empty if nothing drafts, or drafts have no weights.
  std::optional<cost::PlacedModel> draft = {};
  /// Tokens per block of the cache, [1, 2^49]; those of a whole batch to test whether it fits.
  std::int64_t block_size = 16;
  /// Sequences that may run together, >= 1: each holds states of linear and recurrent layers.
  std::int64_t max_num_seqs = 1;
  /// Positions of an iteration, >= 1.
  std::int64_t max_num_batched_tokens = 8192;
};

/// Bytes are those of one accelerator, the fullest if the draft is on fewer of them than the target.
struct KvMemory {
  double reserve_bytes = 0;
  /// memory_bytes_per_gpu utilization - reserve_bytes
  double usable_bytes = 0;
  double target_weight_bytes = 0;
  double draft_weight_bytes = 0;
  /// States of max_num_seqs sequences, whatever their length.
  double state_bytes = 0;
  /// The part of usable_bytes that is left for the cache; below 0 if the rest does not fit.
  double cache_bytes = 0;
  /// Cache bytes per token, of the target and the draft together.
  double bytes_per_token = 0;
  /// floor(cache_bytes / (block_size bytes_per_token)), at least 0, and the number of tokens in that many blocks.
  std::int64_t blocks = 0;
  std::int64_t tokens = 0;
};

/// What an engine takes for activations and buffers beside weights and cache, in bytes per accelerator:
///
///   0.37 GiB if several share the target + 4.7 B (H + k max(H, 2 I / G)) 2 + 5.3 S V 4
///
/// with B max_num_batched_tokens, S max_num_seqs, H the width, V the vocabulary, k and I the experts of a token and
/// their width, and G accelerators that share them.
///
/// Source:   fitted to 41 caches that vLLM printed, docs/validation.md#caches-that-engines-printed
double usual_reserve(const ReplicaHolds& holds);

/// Number of tokens for which the caches of target and draft have room beside the weights:
///
///   tokens = (memory utilization - reserve - W_p - W_q - states) / (kv_p + kv_q),   in whole blocks
///
/// Source:   docs/theory.md#memory
/// Assumes:  windowed layers free no memory (an engine without a hybrid cache keeps all tokens of all layers).
/// @throws std::domain_error if a value is outside its range
KvMemory kv_memory(const ReplicaHolds& holds);

/// Cache positions that the rounds of `sequences` write beyond those they keep: gamma drafts and the token before them.
///
///   sequences (gamma + 1)
///
/// @param sequences  >= 0  @param gamma  >= 0
/// @throws std::domain_error if a value is outside its range
std::int64_t lookahead_tokens(std::int64_t sequences, std::int64_t gamma);

/// The fewest accelerators, a power of two from 1 to 1024, over which the layers of the replica could be divided so
/// that each of them has room for a block of the cache; a draft that is divided like the target stays so.
/// @return empty if 1024 do not suffice
std::optional<std::int64_t> gpus_that_hold(const ReplicaHolds& holds);

}  // namespace specdec::planning
