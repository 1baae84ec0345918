#include "sim/serving/run_invariants.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace specdec::sim {

void RunInvariants::require(bool holds, std::string_view what) const {
  if (holds) return;
  throw std::logic_error(fmt::format("simulate_serving: {} at {} seconds, after {} iterations", what, checked_at_,
                                     measures_.iterations()));
}

void RunInvariants::check_iteration(EngineState& state, std::size_t served, double now) {
  const double before = std::exchange(checked_at_, now);
  require(now >= before, "time goes back");
  const ServingEngine& engine = question_.engine;
  const EngineIteration& iteration = state.iteration;
  HeldByRunning held = check_running(state.running);
  if (state.in_step) {
    const auto blocks = state.in_step->blocks_of_each(state.queue.admitted(), state.blocks);
    require(blocks.has_value(), "sequences are out of step");
    held.blocks += *blocks;
    held.positions += static_cast<std::int64_t>(state.in_step->size()) * (iteration.gamma + 1);
    held.scheduled += state.in_step->size();
  }
  require(state.blocks.free() >= 0 && held.blocks + state.blocks.free() == engine.cache_blocks, "blocks are lost");
  require(held.positions <= engine.max_num_batched_tokens &&
              iteration.budget == engine.max_num_batched_tokens - held.positions,
          "the budget of positions is exceeded");
  require(held.scheduled == static_cast<std::size_t>(iteration.batch), "the batch is miscounted");
  require(state.count_running() <= static_cast<std::size_t>(engine.max_num_seqs), "more requests run than may");
  check_order(state, served);
}

RunInvariants::HeldByRunning RunInvariants::check_running(const RunningRequests& running) const {
  const std::int64_t block_size = question_.engine.block_size;
  HeldByRunning held;
  for (std::size_t i = 0; i < running.size; ++i) {
    const SimulatedRequest& asked = question_.requests[running.request[i]];
    held.blocks += running.slots[i] / block_size;
    held.positions += running.scheduled[i];
    held.scheduled += running.scheduled[i] > 0 ? 1 : 0;
    require(running.slots[i] % block_size == 0 && running.computed[i] + running.scheduled[i] <= running.slots[i],
            "a request's blocks are too few for its tokens");
    const std::int64_t known = running.prompt_left[i] > 0 ? 0 : 1;
    require(running.computed[i] + running.prompt_left[i] + known == asked.prompt_tokens + running.put_out[i],
            "a request's tokens are lost");
    require(running.put_out[i] < running.wanted[i], "a request runs on after its end");
    require(i == 0 || running.request[i - 1] < running.request[i], "requests that run are out of order");
  }
  return held;
}

void RunInvariants::check_order(const EngineState& state, std::size_t served) const {
  const RunningRequests& running = state.running;
  const std::vector<GivenUp>& given_up = state.queue.given_up();
  const std::size_t admitted = state.queue.admitted();
  const std::size_t last = running.size == 0 ? 0 : running.request[running.size - 1] + 1;
  for (std::size_t i = 0; i < given_up.size(); ++i) {
    const std::size_t above = i == 0 ? admitted : given_up[i - 1].request;
    require(last <= given_up[i].request && given_up[i].request < above, "requests that were given up are out of order");
  }
  require(last <= admitted && admitted <= state.queue.arrived() &&
              state.count_running() + given_up.size() + served == admitted,
          "a request is lost or served twice");
}

void RunInvariants::check_ended(const RunningRequests& running, std::size_t i, const ServedRequest& outcome) const {
  const SimulatedRequest& asked = question_.requests[running.request[i]];
  require(running.computed[i] == asked.prompt_tokens + asked.output_tokens - 1, "an ended request's tokens are lost");
  require(outcome.last_token_seconds == 0, "a request is served twice");
}

void RunInvariants::check_end(const ServingResult& result, const CacheBlocks& blocks) {
  checked_at_ = result.seconds;
  std::int64_t tokens = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < question_.requests.size(); ++i) {
    const ServedRequest& served = result.requests[i];
    tokens += served.output_tokens;
    seconds += served.last_token_seconds - question_.outside_seconds;
    require(served.output_tokens == question_.requests[i].output_tokens,
            "a request got another number of tokens than it asked for");
    require(0 <= served.first_token_seconds && served.first_token_seconds <= served.last_token_seconds,
            "a request's times are out of order");
  }
  require(tokens == measures_.tokens(), "tokens are lost");
  require(blocks.free() == blocks.all(), "blocks are held by nobody");
  const auto count = static_cast<double>(question_.requests.size());
  require(std::abs(seconds - result.request_seconds) <= 1e-9 * seconds + 1e-12 * count * result.seconds,
          "Little's law does not hold");
}

}  // namespace specdec::sim
