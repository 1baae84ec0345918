#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"

/// A serving engine with continuous batching, iteration by iteration: docs/capacity.md#simulation.
namespace specdec::sim {

/// A request that will be served.
struct SimulatedRequest {
  /// >= 0, rising over the requests.
  double arrival_seconds = 0;
  /// Tokens, >= 1.
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = 1;
};

/// How often drafts of one kind of request are accepted: [j] = P(draft j + 1 is accepted | those before it were).
/// Drafts beyond the last entry are accepted as the last one is; empty accepts none.
struct RequestAcceptance {
  std::vector<double> conditional;
};

/// A gamma for all batches from batch_low on, until the next stretch.
struct GammaFrom {
  std::int64_t batch_low = 1;
  std::int64_t gamma = 0;
};

/// The engine, in the words of vLLM's options.
struct ServingEngine {
  /// Rising, the first from batch 1 on; gamma >= 0. {{1, 0}} is plain decoding.
  std::vector<GammaFrom> schedule = {{1, 0}};
  /// >= 1
  std::int64_t max_num_seqs = 256;
  /// Positions of an iteration, >= 1; a decoding sequence takes gamma + 1 of them.
  std::int64_t max_num_batched_tokens = 8192;
  /// Tokens per block of the cache, >= 1, and blocks there are, >= 1.
  std::int64_t block_size = 16;
  std::int64_t cache_blocks = 1;
  /// Share of a prompt that is found in the cache and not computed again, [0, 1).
  double prefix_cache_hit_rate = 0;
  /// Prompts are computed elsewhere and cost nothing here.
  bool decode_only = false;
};

struct ServingQuestion {
  /// In order of arrival, at least one.
  std::vector<SimulatedRequest> requests;
  ServingEngine engine;
  /// Prices iterations; not null.
  std::shared_ptr<const cost::IterationCost> cost;
  /// Each request draws one of them and keeps it; empty where nothing is drafted.
  std::vector<RequestAcceptance> acceptance;
  std::uint64_t seed = 0;
  /// Requests that arrive before this share of all, and after one minus this share, are served and not counted, [0,
  /// 0.4].
  double warm_up_share = 0.1;
};

/// Values at 50%, 90% and 99% of the requests, and their mean; nothing where no request has one.
struct RequestPercentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// What happened to one request.
struct ServedRequest {
  double first_token_seconds = 0;  ///< since its arrival
  double last_token_seconds = 0;   ///< since its arrival
  std::int64_t output_tokens = 0;
  std::int64_t preemptions = 0;
};

struct ServingResult {
  /// [request]
  std::vector<ServedRequest> requests;
  /// Over the requests that count. Time per output token is (last - first) / (output tokens - 1), for requests of two
  /// tokens or more.
  std::optional<RequestPercentiles> ttft_seconds, tpot_seconds, end_to_end_seconds;
  /// From the first counted arrival to the last counted one: output tokens per second, iterations, time-weighted mean
  /// of the sequences that decode and that run or wait, share of the time that iterations were under way.
  double output_tokens_per_second = 0;
  double mean_batch = 0, mean_waiting = 0, busy_share = 0;
  double mean_iteration_seconds = 0;
  double tokens_per_step = 1;
  /// Most blocks in use at once.
  std::int64_t peak_blocks = 0;
  std::int64_t iterations = 0, preemptions = 0;
  /// Requests that waited or ran when the last one arrived, and halfway.
  std::int64_t backlog_at_end = 0, backlog_at_middle = 0;
  double seconds = 0;  ///< until the last request was served
};

/// Serves all requests. One iteration after another: sequences that run are taken in order of arrival, each with its
/// gamma + 1 positions or the next piece of its prompt, as far as max_num_batched_tokens and the blocks go; where
/// blocks run out, the sequence that arrived last gives up its own and starts again, keeping the tokens it put out as
/// part of its prompt; then, if nothing was given up, waiting ones are admitted in order. The iteration takes what the
/// cost says, and every sequence whose prompt is complete puts out its accepted drafts and one token more.
///
/// Same question, same result, bit for bit.
/// Source:   docs/capacity.md#simulation, where each rule is given with the release of vLLM it was read from
/// @throws std::domain_error if a value is outside its range, arrivals fall, or a request cannot fit into the cache at
/// all
ServingResult simulate_serving(const ServingQuestion& question);

}  // namespace specdec::sim
