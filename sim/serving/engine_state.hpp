#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"
#include "sim/serving/cache_blocks.hpp"
#include "sim/serving/decoding_in_step.hpp"
#include "sim/serving/draft_budget.hpp"
#include "sim/serving/request_queue.hpp"
#include "sim/serving/running_requests.hpp"
#include "sim/serving/shared_prefixes.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// An iteration of a serving engine: who takes part, and what it has to compute.
struct EngineIteration {
  /// The work by which it is priced.
  cost::Iteration work = {};
  std::int64_t gamma = 0;
  /// Positions left in it.
  std::int64_t budget = 0;
  /// Requests in it, those of them that decode, and of these those whose previous round was fully accepted.
  std::int64_t batch = 0, decoding = 0;
  std::int64_t fully_accepted = 0;

  /// So many positions of a prompt, behind so many that are computed.
  void take_prompt(std::int64_t positions, std::int64_t computed) {
    take(positions);
    const auto count = static_cast<double>(positions);
    work.prompt_tokens += count;
    work.prompts += 1;
    work.prompt_pairs += count * static_cast<double>(computed) + count * (count + 1) / 2;
  }

  /// A round of a sequence, of whose positions it takes so many.
  void take_round(std::int64_t positions, std::int64_t wanted, std::int64_t context, bool follows_full_accept) {
    take(positions);
    // A round that was cut to the rest of the budget is a fraction of a sequence.
    const double share = positions == wanted ? 1 : static_cast<double>(positions) / static_cast<double>(wanted);
    work.sequences += share;
    if (work.verified) *work.verified += share * static_cast<double>(wanted - 1);
    work.context_tokens += static_cast<double>(context);
    fully_accepted += follows_full_accept ? 1 : 0;
    ++decoding;
  }

  /// The rounds of all sequences in step, before anything else.
  void take_those_in_step(const DecodingInStep& in_step) {
    const auto count = static_cast<std::int64_t>(in_step.size());
    batch = decoding = count;
    budget -= count * (gamma + 1);
    work.sequences = static_cast<double>(count);
    work.context_tokens = static_cast<double>(in_step.context_tokens());
    fully_accepted = in_step.round().following_full_accepts();
  }

 private:
  void take(std::int64_t positions) {
    budget -= positions;
    ++batch;
  }
};

/// The state of a serving engine: the requests that wait and those that run, their blocks, and the iteration under way.
struct EngineState {
  /// @param outcomes  [request]; must outlive the object
  EngineState(const ServingQuestion& question, std::vector<ServedRequest>& outcomes)
      : queue(question, outcomes),
        blocks(question.engine.cache_blocks, question.engine.block_size),
        prefixes(question),
        draft_budget(largest_gamma_of(question.engine.schedule),
                     question.engine.verification_budget ? most_running(question) : 0) {}

  /// The most requests that run at once.
  static std::size_t most_running(const ServingQuestion& question) {
    return std::min(question.requests.size(), static_cast<std::size_t>(question.engine.max_num_seqs));
  }

  std::size_t count_in_step() const { return in_step ? in_step->size() : 0; }
  std::size_t count_running() const { return running.size() + count_in_step(); }
  std::size_t count_in_system() const { return queue.waiting() + count_running(); }

  /// Frees the blocks of a request that ends or gives them up, apart from those that others hold.
  void let_go(std::size_t request, std::int64_t held) {
    prefixes.let_go(request);
    blocks.give_back(held - prefixes.blocks_of_others(request));
  }

  RequestQueue queue;
  /// All requests that run, or, while sequences are in step, those whose prompts are being computed.
  RunningRequests running;
  std::optional<DecodingInStep> in_step;
  CacheBlocks blocks;
  SharedPrefixes prefixes;
  DraftBudget draft_budget;
  EngineIteration iteration;
};

}  // namespace specdec::sim
