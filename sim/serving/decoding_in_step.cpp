#include "sim/serving/decoding_in_step.hpp"

#include <algorithm>
#include <bit>

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
  const bool one_gamma = std::all_of(
      engine.schedule.begin(), engine.schedule.end(),
      [most = largest_gamma_of(engine.schedule)](const GammaFrom& stretch) { return stretch.gamma == most; });
  return one_gamma && !engine.prefill_first && !engine.verification_budget &&
         most_running <= RoundSum::most_sequences && longest_output(question.requests) <= most_rounds;
}

DecodingInStep::DecodingInStep(const ServingQuestion& question, const CountedRequests& counted, RequestRounds& rounds)
    : requests_(question.requests),
      counted_requests_(counted),
      rounds_(rounds),
      mask_(std::bit_ceil(static_cast<std::size_t>(longest_output(requests_)) + 1) - 1),
      sums_(mask_ + 1),
      last_at_(mask_ + 1, none),
      also_ending_(requests_.size(), none),
      began_(requests_.size(), none) {}

void DecodingInStep::begin(std::size_t request) {
  context_tokens_ += requests_[request].prompt_tokens;
  counted_ += counted_requests_.contains(request) ? 1 : 0;
  const std::span<const RoundSum> rounds = rounds_.of(request);
  const std::size_t place = at_ & mask_;
  const std::size_t straight = std::min(rounds.size(), sums_.size() - place);
  for (std::size_t i = 0; i < straight; ++i) sums_[place + i] += rounds[i];
  for (std::size_t i = straight; i < rounds.size(); ++i) sums_[i - straight] += rounds[i];
  std::size_t& last = last_at_[(at_ + rounds.size() - 1) & mask_];
  also_ending_[request] = std::exchange(last, request);
  began_[request] = at_;
  ++size_;
}

void DecodingInStep::move_to(RunningRequests& running, std::size_t admitted, const CacheBlocks& blocks, double now) {
  RunningRequests decoding;
  for (std::size_t request = 0; request < admitted; ++request)
    if (began_[request] != none) decoding.push_back(alone(request, at_ - began_[request], blocks, now));
  // Prompts came last.
  running.insert(running.begin(), decoding.begin(), decoding.end());
}

RunningRequest DecodingInStep::alone(std::size_t request, std::size_t since, const CacheBlocks& blocks, double now) {
  const SimulatedRequest& asked = requests_[request];
  std::int64_t emitted = 0, held = blocks.blocks_for(asked.prompt_tokens + rounds_.largest_gamma());
  const std::span<const RoundSum> all = rounds_.of(request);
  for (const RoundSum& round : all.first(since)) {
    emitted += round.emitted();
    held += round.blocks();
  }
  return {.request = request,
          .law = rounds_.law_of(request),
          .computed = asked.prompt_tokens + emitted,
          .put_out = 1 + emitted,
          .wanted = asked.output_tokens,
          .slots = held * blocks.tokens_per_block(),
          .last_output = now,
          .fully_accepted = all[since].following_full_accepts() > 0};
}

}  // namespace specdec::sim
