#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/serving/cache_blocks.hpp"
#include "sim/serving/counted_requests.hpp"
#include "sim/serving/request_rounds.hpp"
#include "sim/serving/running_requests.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The sequences of a run that all take part in every iteration, so that an iteration is a sum over what is known of
/// each.
class DecodingInStep {
 public:
  /// Whether rounds of a request depend on nothing else, and sums of them have room. @param most_running  at once
  static bool suits(const ServingQuestion& question, std::size_t most_running);

  /// References must outlive the object. @param rounds  those of the requests
  DecodingInStep(const ServingQuestion& question, const CountedRequests& counted, RequestRounds& rounds);

  std::size_t size() const { return size_; }
  /// The sum of the rounds of the coming iteration.
  const RoundSum& round() const { return sums_[at_ & mask_]; }
  /// Tokens in the caches of all.
  std::int64_t context_tokens() const { return context_tokens_; }
  /// The number of counted requests among them.
  std::int64_t counted() const { return counted_; }

  /// A request whose prompt is computed; its rounds follow.
  void begin(std::size_t request);

  /// Ends the iteration; calls `ended` with each request that this was the last round of and the blocks that it held.
  /// Returns the tokens that were put out.
  template <class Ended>
  std::int64_t pass(const Ended& ended) {
    const std::int64_t emitted = std::exchange(sums_[at_ & mask_], {}).emitted();
    context_tokens_ += emitted;
    std::size_t next = std::exchange(last_at_[at_ & mask_], none);
    ++at_;
    while (next != none) {
      const std::size_t request = next;
      next = std::exchange(also_ending_[request], none);
      began_[request] = none;
      --size_;
      const SimulatedRequest& asked = requests_[request];
      context_tokens_ -= asked.prompt_tokens + asked.output_tokens - 1;
      counted_ -= counted_requests_.contains(request) ? 1 : 0;
      ended(request, rounds_.last_blocks(request));
    }
    return emitted;
  }

  /// Makes each of them a running request by itself, before those that run. @param admitted  requests before this one
  /// may be in step  @param now  when all put out their last tokens
  void move_to(RunningRequests& running, std::size_t admitted, const CacheBlocks& blocks, double now);

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// A sequence that was in step so many rounds.
  RunningRequest alone(std::size_t request, std::size_t since, const CacheBlocks& blocks, double now);

  const std::vector<SimulatedRequest>& requests_;
  const CountedRequests counted_requests_;
  RequestRounds& rounds_;
  std::int64_t context_tokens_ = 0, counted_ = 0;
  std::size_t mask_;
  /// The coming iteration.
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  /// [iteration, modulo their size]: the sum, and a request whose last one it is.
  std::vector<RoundSum> sums_;
  std::vector<std::size_t> last_at_;
  /// [request]: another one that ends with it; its first iteration.
  std::vector<std::size_t> also_ending_, began_;
};

}  // namespace specdec::sim
