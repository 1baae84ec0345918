#pragma once

#include <cstdint>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"
#include "analysis/planning/steady_state.hpp"

namespace specdec::planning {

// Internal header of the library; it is not installed.

/// The largest batch that a replica can hold, and what stops a larger one.
struct LargestBatch {
  /// 0 if not even one sequence can decode; not necessarily an integer.
  double sequences = 0;
  /// The same, rounded up.
  std::int64_t states = 0;
  CapacityLimit limit = CapacityLimit::none;
};

/// The iterations of a replica under a load, priced as requested so far: how fast so many sequences decode, and how
/// much prompts delay them.
class ReplicaIterations {
 public:
  /// Both must outlive the object.
  ReplicaIterations(const cost::IterationCost& cost, const LoadedReplica& replica);

  LargestBatch largest_batch() const;

  /// Those of a batch of so many sequences.
  const RoundsFrom& rounds(double sequences) const;
  /// Rounds that a request takes after its first token.
  double rounds_of_request(double sequences) const;
  /// Seconds of a round without prompts.
  double plain_seconds(double sequences);
  /// Requests that this many sequences complete per second of the time left to decoding.
  double leaving(double sequences);
  /// Seconds by which a prompt delays this many sequences; infinity if prompts arrive faster than they are computed.
  double delay(double sequences, double requests_per_second);
  /// Seconds of a prompt's passes beside so many rounds.
  double prompt_seconds(double sequences) const;
  /// The same where fewer than one sequence in the mean are sometimes one and else none.
  double mean_prompt_seconds(double sequences) const;
  /// The load at which as many requests arrive as leave from this many sequences: an iteration then has the prompts of
  /// the requests that leave in it, as far as the budget allows. 0 if it leaves no room for prompts.
  double balanced_load(double sequences);

 private:
  double sequences_in_cache(double cache, double tokens) const;
  cost::Iteration iteration(double sequences, double prompt_positions) const;
  double delay_of(double sequences, double positions);
  double piece(double sequences, double prompts_per_iteration) const;

  const cost::IterationCost& cost_;
  const OfferedLoad& load_;
  const ReplicaLimits& limits_;
  const std::vector<RoundsFrom>& rounds_;
  double budget_;
  /// Computed positions of a prompt.
  double prompt_;
  /// [batch], 0 if not yet requested
  std::vector<double> plain_;
};

}  // namespace specdec::planning
