#include "sim/serving/decoding_in_step.hpp"

#include <algorithm>

namespace specdec::sim {
namespace {

std::int64_t longest_output(const std::vector<SimulatedRequest>& requests) {
  std::int64_t longest = 0;
  for (const SimulatedRequest& request : requests) longest = std::max(longest, request.output_tokens);
  return longest;
}

}  // namespace

bool DecodingInStep::suits(const ServingQuestion& question, std::size_t most_running) {
  constexpr std::int64_t most_rounds = 1 << 20;
  const ServingEngine& engine = question.engine;
  const bool one_gamma =
      std::all_of(engine.schedule.begin(), engine.schedule.end(),
                  [most = largest_gamma_of(engine)](const GammaFrom& stretch) { return stretch.gamma == most; });
  return one_gamma && !engine.prefill_first && !engine.verification_budget &&
         most_running <= RoundSum::most_sequences && longest_output(question.requests) <= most_rounds;
}

DecodingInStep::DecodingInStep(const ServingQuestion& question, const CountedRequests& counted,
                               DrawnAcceptance& acceptance, RequestRounds* shared)
    : requests_(question.requests),
      counted_requests_(counted),
      acceptance_(acceptance),
      shared_(shared),
      sequences_(requests_.size(), static_cast<std::size_t>(longest_output(requests_))) {
  if (!shared)
    own_.emplace(requests_, question.acceptance, acceptance.largest_gamma(), question.engine.block_size,
                 acceptance.draws(), 0);
}

void DecodingInStep::begin(std::size_t request) {
  context_tokens_ += requests_[request].prompt_tokens;
  counted_ += counted_requests_.contains(request) ? 1 : 0;
  sequences_.begin(request, rounds().of(request));
}

void DecodingInStep::move_to(RunningRequests& running, std::size_t admitted, const CacheBlocks& blocks, double now) {
  // Prompts came last.
  for (std::size_t i = running.size; i-- > 0;) running.move(i, size() + i);
  running.size += size();
  std::size_t at = 0;
  for (std::size_t request = 0; request < admitted; ++request) {
    const auto since = sequences_.rounds_of(request);
    if (!since) continue;
    running.last_output[at] = now;
    place(running, at++, request, *since, blocks);
  }
}

void DecodingInStep::place(RunningRequests& running, std::size_t at, std::size_t request, std::size_t since,
                           const CacheBlocks& blocks) {
  const SimulatedRequest& asked = requests_[request];
  std::int64_t emitted = 0, held = blocks.blocks_for(asked.prompt_tokens + acceptance_.largest_gamma());
  const std::span<const RoundSum> all = rounds().of(request);
  for (const RoundSum& round : all.first(since)) {
    emitted += round.emitted();
    held += round.blocks();
  }
  running.request[at] = request;
  running.computed[at] = asked.prompt_tokens + emitted;
  running.prompt_left[at] = 0;
  running.put_out[at] = 1 + emitted;
  running.wanted[at] = asked.output_tokens;
  running.slots[at] = held * blocks.tokens_per_block();
  running.scheduled[at] = 0;
  running.fully_accepted[at] = all[since].following_full_accepts() > 0;
  running.law[at] = acceptance_.law_of(request);
}

}  // namespace specdec::sim
