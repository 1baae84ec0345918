#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"

/// A serving engine with continuous batching, iteration by iteration: docs/theory.md#simulation.
namespace specdec::sim {

/// A request to be served.
struct SimulatedRequest {
  /// >= 0, nondecreasing.
  double arrival_seconds = 0;
  /// Tokens, [1, 2^30].
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = 1;
};

/// The acceptance of one kind of request's drafts: [j] = P(draft j + 1 is accepted | those before it were).
/// Drafts beyond the last entry are accepted like the last one; empty accepts none. Entries in [0, 1].
struct RequestAcceptance {
  std::vector<double> conditional;

  struct FromContext {
    /// Tokens in the request's cache before the round, >= 1, rising from one entry to the next.
    std::int64_t tokens = 1;
    std::vector<double> conditional;
  };
  /// Rates in place of `conditional` from a context on, up to where another entry begins. All laws of a question change
  /// at the same contexts.
  std::vector<FromContext> from_contexts = {};
};

/// A gamma for all batches from batch_low on, until the next stretch. The batch is the one by which vLLM looks up its
/// schedule: the requests of the previous iteration, including those whose prompts were computed, since drafts are made
/// at its end.
struct GammaFrom {
  std::int64_t batch_low = 1;
  std::int64_t gamma = 0;
};
/// That of the stretch that holds a batch; 0 below the first.
std::int64_t gamma_at(std::span<const GammaFrom> schedule, double batch);
std::int64_t largest_gamma_of(std::span<const GammaFrom> schedule);

/// The engine, in terms of vLLM's options.
struct ServingEngine {
  /// In increasing order, the first from batch 1 on; gamma in [0, 1024]. {{1, 0}} is plain decoding. The largest gamma
  /// is also the number of look-ahead slots that each running request keeps in the cache.
  std::vector<GammaFrom> schedule = {{1, 0}};
  /// >= 1
  std::int64_t max_num_seqs = 256;
  /// Positions of an iteration, >= 1; a decoding sequence takes one for each draft that is verified and one more, or as
  /// many as are left.
  std::int64_t max_num_batched_tokens = 8192;
  /// Tokens per block of the cache, [1, 2^20], and the number of blocks, [1, 2^40].
  std::int64_t block_size = 16;
  std::int64_t cache_blocks = 1;
  /// Share of each prompt that is found in the cache and not recomputed, [0, 1), rounded down to whole tokens; the
  /// last token is always computed. The found part still takes its blocks.
  double prefix_cache_hit_rate = 0;
  /// >= 1: distinct prefixes of all requests, which have them in turn. Running requests with the same one hold its
  /// whole blocks once, as far as the longest of them found it; empty if no two have the same one.
  std::optional<std::int64_t> shared_prefixes = {};
  /// Prompts are computed elsewhere: an admitted request takes the blocks of its prompt and computes only the prompt's
  /// last position, so that its first token comes with its first iteration here. A preempted one computes everything.
  bool decode_only = false;
  /// While there are prompts to compute that find room, iterations have prompts alone, and rounds wait; else they share
  /// iterations.
  bool prefill_first = false;
  /// Verifies only those of each sequence's gamma drafts that make most tokens for the time of the rounds: by
  /// theory::best_budget's rule, by what was accepted at each position of a sequence since it was admitted, and of all
  /// sequences before; the time of a round is linear between whole numbers of drafts of each sequence.
  /// Source:   docs/theory.md#a-budget-of-verified-drafts
  bool verification_budget = false;
};

struct ServingQuestion {
  /// In order of arrival, at least one.
  std::vector<SimulatedRequest> requests;
  ServingEngine engine;
  /// Prices iterations; non-null.
  std::shared_ptr<const cost::IterationCost> cost;
  /// Each request draws one of them, all equally likely, and keeps it; may be empty if nothing is drafted.
  std::vector<RequestAcceptance> acceptance;
  std::uint64_t seed = 0;
  /// If given, >= 1, a closed loop in place of the requests' arrivals: so many clients, each of which sends the next
  /// request, in order, once the last token of its previous one has come. All begin at 0.
  std::optional<std::int64_t> clients = {};
  /// Seconds of each request outside the engine, on its way there and back, >= 0: transport, tokenizer. They are in all
  /// times of requests, and a client's next request reaches the engine so much later.
  double outside_seconds = 0;
  /// Requests that arrive before this share of all, and after one minus this share, are served but not counted, [0,
  /// 0.4].
  double warm_up_share = 0.1;
};

/// The mean, and the smallest values with at least 50%, 90% and 99% of the requests, or of the gaps between their
/// outputs, at or below them.
struct RequestPercentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
  /// The value at another percentage, which the caller chooses; else the 99th again.
  double asked = 0;
};

/// The outcome of one request.
struct ServedRequest {
  double arrival_seconds = 0;      ///< when it reached the engine
  double first_token_seconds = 0;  ///< since it was sent
  double last_token_seconds = 0;   ///< since it was sent
  std::int64_t output_tokens = 0;
  std::int64_t preemptions = 0;
};

/// Pauses between two outputs of a request, the tokens of a round being one output.
struct GapCount {
  double seconds = 0;
  std::int64_t count = 0;
};

struct ServingResult {
  /// [request]
  std::vector<ServedRequest> requests;
  /// The counted requests: counted_requests of them from first_counted on, at least one.
  std::size_t first_counted = 0, counted_requests = 0;
  /// Between the outputs of the counted requests, in increasing order. Accuracy: relative error <= 2^-15.
  std::vector<GapCount> gaps;

  // Over the counted time: from the first counted arrival to the last counted one, or, if these are one, from the
  // first arrival to the end.
  double output_tokens_per_second = 0;
  /// Decoding sequences, averaged over all of that time, idle or not.
  double mean_batch = 0;

  // In the whole run.
  /// Largest number of blocks in use at once.
  std::int64_t peak_blocks = 0;
  std::int64_t iterations = 0, preemptions = 0;
  double seconds = 0;  ///< when the last request was served
};

/// Thrown if the cache has no room for the last round of a request, even if it were served alone.
struct CacheTooSmall : std::domain_error {
  CacheTooSmall(const std::string& message, std::string which, std::int64_t needed, std::int64_t there)
      : std::domain_error(message), request(std::move(which)), needed_tokens(needed), cache_tokens(there) {}

  /// "request 0 (100 tokens of prompt, 20 of output, 6 slots for drafts)"
  std::string request;
  /// In whole blocks.
  std::int64_t needed_tokens = 0, cache_tokens = 0;
};

/// Serves all requests. In each iteration, running requests are taken in order of arrival, each with its
/// gamma + 1 positions or the next piece of its prompt, as far as max_num_batched_tokens and the blocks allow; if
/// blocks run out, the request that arrived last gives up its own and waits, to recompute its prompt and its emitted
/// tokens; then, if none gave up its blocks, waiting ones are admitted in order. The iteration takes the time that the
/// cost gives, and at its end every request whose prompt is complete emits a token, with the accepted drafts before it.
///
/// With `clients` the first of them arrive together, in order; a request that is sent at the end of an iteration takes
/// part in the next one, unless outside_seconds delays it.
///
/// Random numbers are functions of (seed, request, tokens emitted before), so they depend neither on other requests nor
/// on the engine. The same question gives the same result, bit for bit.
///
/// Source:   docs/theory.md#simulation, which names for each rule the release of vLLM it was read from
/// @throws std::domain_error if a value is outside its range, arrivals decrease, the cost is not finite and above 0, or
/// arrivals reach so far that the clock, seconds in double precision, cannot
///   resolve an iteration to 1e-4 of its length
/// @throws std::invalid_argument if there are no requests, no cost, no schedule, or no acceptance of drafts that are
///   made
/// @throws CacheTooSmall, a std::domain_error, for the request that does not fit
ServingResult simulate_serving(const ServingQuestion& question);

}  // namespace specdec::sim
