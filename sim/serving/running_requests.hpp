#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Running requests, in order of arrival, one array per property; never longer than the size it was made for.
struct RunningRequests {
  explicit RunningRequests(std::size_t most)
      : request(most),
        law(most),
        computed(most),
        prompt_left(most),
        put_out(most),
        wanted(most),
        slots(most),
        scheduled(most),
        last_output(most),
        fully_accepted(most) {}

  std::size_t size = 0;
  std::vector<std::size_t> request;
  /// The stretch of its law that holds at its context, or one before it.
  std::vector<std::size_t> law;
  /// Tokens in its cache, and those to come before it emits its next token; 0 if it decodes.
  std::vector<std::int64_t> computed, prompt_left;
  /// Tokens that it has emitted, and that were requested.
  std::vector<std::int64_t> put_out, wanted;
  /// Tokens that its blocks can hold.
  std::vector<std::int64_t> slots;
  /// Positions in the current iteration.
  std::vector<std::int64_t> scheduled;
  /// When it last emitted tokens.
  std::vector<double> last_output;
  /// 1 if its last round was fully accepted.
  std::vector<std::uint8_t> fully_accepted;

  void move(std::size_t from, std::size_t to) {
    request[to] = request[from];
    law[to] = law[from];
    computed[to] = computed[from];
    prompt_left[to] = prompt_left[from];
    put_out[to] = put_out[from];
    wanted[to] = wanted[from];
    slots[to] = slots[from];
    scheduled[to] = scheduled[from];
    last_output[to] = last_output[from];
    fully_accepted[to] = fully_accepted[from];
  }
};

}  // namespace specdec::sim
