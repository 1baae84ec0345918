#include "sim/monte_carlo.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <thread>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

struct Outcome {
  Generation generation;
  std::exception_ptr error;
};

Outcome run(const SequenceDecoder& decoder, std::uint64_t seed, std::int64_t sequence) {
  try {
    return {decoder(sequence, RandomStream(seed, static_cast<std::uint64_t>(sequence))), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

/// Each thread takes the next sequence that nobody has taken; where a result is stored depends on its number alone.
void run_portion(const std::vector<SequenceDecoder>& decoders, std::uint64_t seed, std::int64_t first,
                 std::span<Outcome> outcomes) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (const SequenceDecoder& decoder : decoders) {
    threads.emplace_back([&decoder, &next, seed, first, outcomes] {
      for (std::size_t i = next++; i < outcomes.size(); i = next++)
        outcomes[i] = run(decoder, seed, first + static_cast<std::int64_t>(i));
    });
  }
}

}  // namespace

void for_each_sequence(const MonteCarloOptions& options, const std::function<SequenceDecoder()>& make_decoder,
                       const std::function<void(std::int64_t sequence, const Generation&)>& consume) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  core::require_in("for_each_sequence", "sequences", options.sequences, 0, most);
  core::require_in("for_each_sequence", "threads", options.threads, 1, 1024);
  std::vector<SequenceDecoder> decoders;
  for (std::int64_t i = 0; i < options.threads; ++i) decoders.push_back(make_decoder());

  constexpr std::int64_t portion = 4096;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(std::min(portion, options.sequences)));
  for (std::int64_t done = 0; done < options.sequences;) {
    const std::int64_t count = std::min(portion, options.sequences - done);
    run_portion(decoders, options.seed, done, std::span(outcomes).first(static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(i)];
      if (outcome.error) std::rethrow_exception(outcome.error);
      consume(done + i, outcome.generation);
    }
    done += count;
  }
}

Counters simulate(const TablePair& pair, std::span<const Token> prompt, const DecodingOptions& decoding,
                  const MonteCarloOptions& options) {
  const auto make_decoder = [&pair, prompt, &decoding]() -> SequenceDecoder {
    return [own = pair, prompt, &decoding](std::int64_t, const RandomStream& stream) mutable {
      return decode_speculatively(own.target, own.draft, prompt, decoding, stream);
    };
  };
  Counters all;
  for_each_sequence(options, make_decoder, [&all](std::int64_t, const Generation& one) { all.merge(one.counters); });
  return all;
}

}  // namespace specdec::sim
