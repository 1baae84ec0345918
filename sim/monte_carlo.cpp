#include "sim/monte_carlo.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"

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
    // The place of a result depends on the sequence's number alone.
    core::for_each_index(count, options.threads, [&](std::int64_t i, std::int64_t worker) {
      outcomes[static_cast<std::size_t>(i)] = run(decoders[static_cast<std::size_t>(worker)], options.seed, done + i);
    });
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
