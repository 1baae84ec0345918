#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"

namespace specdec::planning {

/// The load on one replica of a service, in means over requests.
struct OfferedLoad {
  /// > 0
  double requests_per_second = 0;
  /// Tokens of a prompt, >= 1, and share of its positions that need not be computed, [0, 1); at least one always is.
  double prompt_tokens = 1;
  double prefix_cache_hit_rate = 0;
  /// >= 1: the number of distinct prefixes of which these positions are; the cache holds each once, however many
  /// sequences have it. Empty if each sequence has its own.
  std::optional<std::int64_t> shared_prefixes = {};
  /// Standard deviation / mean of the prompts' tokens, >= 0.
  double prompt_variation = 0;
  /// Number of computed (position of a prompt, position that it attends to) pairs, >= 0.
  double prompt_pairs = 0;
  /// Tokens, > 1: the first one comes with the prompt, so that a request of one token does not decode.
  double output_tokens = 2;
  /// Time average of the tokens in the cache of a decoding sequence: the mean of (prompt + output / 2) weighted by
  /// output, >= 0.
  double mean_context = 0;
  /// Prompts are computed elsewhere, except for the last position, which gives the first token.
  bool decode_only = false;
};

/// A replica of the service.
struct ReplicaLimits {
  /// [1, 2^20]
  std::int64_t max_num_seqs = 256;
  /// [1, 2^31]
  std::int64_t max_num_batched_tokens = 8192;
  /// Tokens that its cache holds, > 0. A sequence occupies its context, the gamma + 1 positions of its round and the
  /// largest gamma of look-ahead slots.
  double cache_tokens = 0;
  /// Prompts are computed in iterations of their own, in which no round takes part.
  bool prefill_first = false;
};

/// The rounds at batches from batch_low on, until the next stretch.
struct RoundsFrom {
  /// >= 1; the first stretch begins at 1 and the others follow in increasing order.
  std::int64_t batch_low = 1;
  /// >= 0
  std::int64_t gamma = 0;
  /// E: (output - 1) / mean rounds of a request, [1, gamma + 1]. If requests differ in acceptance this is the
  /// harmonic mean of theirs.
  double tokens_per_step = 1;
  /// As in RoundPoint.
  double full_accepts = 0;
};

/// A replica under a load.
struct LoadedReplica {
  OfferedLoad load = {};
  ReplicaLimits limits = {};
  /// At least one stretch.
  std::vector<RoundsFrom> rounds = {};
};

/// The limiting factor of a service.
enum class CapacityLimit { none, compute, max_num_seqs, cache, batched_tokens, ttft, tpot };
/// "compute", "max_num_seqs", "cache", "batched_tokens", "ttft", "tpot"; "none".
std::string_view name_of(CapacityLimit limit);

struct SteadyState {
  /// Time averages of the number of decoding sequences and of the largest possible number, so not integers.
  double mean_batch = 0;
  double largest_batch = 0;
  /// Mean seconds of an iteration as experienced by a decoding sequence, and of one of its output tokens.
  double iteration_seconds = 0;
  double tpot_seconds = 0;
  double output_tokens_per_second = 0;
};

/// The replica in equilibrium: a chain over k, the decoding sequences, in the time that is left for decoding. They
/// share it equally, a round each per iteration, so that one leaves at rate k E_k / ((output - 1) T_k). Prompts take
/// the rest: each delays the decoding by D_k, and those that arrive while one is computed are computed with it, so that
/// requests start to decode at rate lambda in groups of X_k, the customers of a busy period with service D_k.
///
///   pi(k + 1) (k + 1) E_(k+1) / ((output - 1) T_(k+1)) = sum_{j<=k} pi(j) lambda P(X_j > k - j)
///   D_k = (T(k rounds and m positions of prompts) - T_k) prompt / m
///
/// m: positions of prompts in an iteration that has any. With prefill_first D_k is T(no rounds, m) prompt / m. Little's
/// law converts the mean batch, which includes delayed sequences, to the time per output token, mean batch / (lambda
/// (output - 1)); it tends to T_1 / E_1 as the load tends to 0.
///
/// Source:   Little 1961; Kelly 1979, section 3.3 (processor sharing); docs/theory.md#steady-state
/// Assumes:  Poisson arrivals. If prompts cost nothing beside decoding the law of lengths does not matter; else the
///           tails of the groups are taken as geometric.
/// @return empty if the load exceeds what the replica can take
/// @throws std::domain_error if a value is outside its range; std::invalid_argument if rounds is empty
std::optional<SteadyState> steady_state(const cost::IterationCost& cost, const LoadedReplica& replica);

/// The same replica in a closed loop: so many clients, each of which sends its next request when the last token of its
/// previous one has come. Mean-value analysis, one client more at a time: a request that comes finds what is there in
/// the mean with one client less, Q prompts that wait or are computed and k sequences that decode.
///
///   W = S_k + Q D_k,   V = (output - 1) / E_(k+1) T_(k+1) / (1 - X (N - 1)/N D_k),   X = N / (W + V + Z)
///
/// W: time to the first token in the engine, S_k a prompt's passes beside k rounds; V: time of the other tokens; Z:
/// outside_seconds. What the largest batch saturates bounds X.
///
/// Source:   Reiser and Lavenberg 1980 (mean-value analysis); docs/theory.md#closed-loop
/// Assumes:  lengths that differ, so that requests do not end together.
/// @param replica          its load's requests_per_second is not used
/// @param clients          N, >= 1
/// @param outside_seconds  seconds of a request outside the engine, >= 0
/// @return empty if not even one sequence fits
/// @throws as steady_state
std::optional<SteadyState> closed_steady_state(const cost::IterationCost& cost, const LoadedReplica& replica,
                                               std::int64_t clients, double outside_seconds);

struct BalancedLoad {
  double requests_per_second = 0;
  double tpot_seconds = 0;
};

/// The load at which as many requests arrive as leave, if the number of decoding sequences did not vary:
///
///   load = k E / ((output - 1) T_k) (1 - load D_k),   time per token = k / (load (output - 1))
///
/// The law of the batch in steady_state() adds to that; it is left out, since it takes as long as a thousand of these.
/// @param sequences  k, > 0
/// @return empty if the replica has no place for so many
/// @throws as steady_state
std::optional<BalancedLoad> balanced_load(const cost::IterationCost& cost, const LoadedReplica& replica,
                                          double sequences);

/// The supremum of the loads that have an equilibrium within the replica's limits.
struct SustainableLoad {
  double requests_per_second = 0;
  /// The state in the limit of that load.
  SteadyState state;
  /// The limit that the largest batch reaches, or compute if a larger batch would hardly serve more: less than 1% of
  /// load for 10% of sequences.
  CapacityLimit limited_by = CapacityLimit::compute;
};

/// @param replica  its load's requests_per_second is not used
/// @return empty if no load meets the limits: not even one sequence fits
/// @throws as steady_state
std::optional<SustainableLoad> sustainable_load(const cost::IterationCost& cost, const LoadedReplica& replica);

}  // namespace specdec::planning
