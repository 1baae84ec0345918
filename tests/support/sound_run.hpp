#pragma once

#include <cstdint>
#include <span>

#include "analysis/cost/iteration_cost.hpp"
#include "sim/serving/serving_simulation.hpp"
#include "tests/support/catch.hpp"

namespace specdec::test_support {

/// What holds of every run of a serving engine: each request got the tokens that it asked for, and its times are in
/// order. Positions, sequences and the cache of its iterations are within the engine's limits.
/// @param iterations  the last of them are the run's
inline void check_sound(const sim::ServingQuestion& question, const sim::ServingResult& result,
                        std::span<const cost::Iteration> iterations) {
  for (std::size_t i = 0; i < question.requests.size(); ++i) {
    const sim::ServedRequest& served = result.requests[i];
    REQUIRE(served.output_tokens == question.requests[i].output_tokens);
    REQUIRE(0 <= served.first_token_seconds);
    REQUIRE(served.first_token_seconds <= served.last_token_seconds);
  }
  const sim::ServingEngine& engine = question.engine;
  REQUIRE(result.peak_blocks <= engine.cache_blocks);
  const auto positions = static_cast<double>(engine.max_num_batched_tokens);
  const double cached = static_cast<double>(engine.cache_blocks) * static_cast<double>(engine.block_size);
  // At least this share of a context is held by its request alone.
  const double own = engine.shared_prefixes ? 1 - engine.prefix_cache_hit_rate : 1;
  for (const cost::Iteration& iteration : iterations.last(static_cast<std::size_t>(result.iterations))) {
    REQUIRE(iteration.decoded_positions() + iteration.prompt_tokens <= positions * (1 + 1e-12));
    REQUIRE(iteration.sequences + iteration.prompts <= static_cast<double>(engine.max_num_seqs) * (1 + 1e-12));
    REQUIRE(iteration.context_tokens * own <= cached);
  }
}

}  // namespace specdec::test_support
