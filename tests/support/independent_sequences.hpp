#pragma once

#include <cstdint>
#include <vector>

#include "analysis/core/parallel.hpp"
#include "sim/generation.hpp"
#include "sim/random.hpp"
#include "sim/table_models.hpp"

namespace specdec::test_support {

/// Generations of sequences 0, 1, ..., each by models and a stream of its own: decode(target, draft, stream).
template <class Decode>
std::vector<sim::Generation> independent_sequences(const sim::TablePair& pair, std::int64_t sequences,
                                                   std::uint64_t seed, const Decode& decode) {
  constexpr std::int64_t threads = 2;
  std::vector<sim::TablePair> own(threads, pair);
  std::vector<sim::Generation> runs(static_cast<std::size_t>(sequences));
  core::for_each_index(sequences, threads, [&](std::int64_t sequence, std::int64_t thread) {
    sim::TablePair& models = own[static_cast<std::size_t>(thread)];
    runs[static_cast<std::size_t>(sequence)] =
        decode(models.target, models.draft, sim::RandomStream(seed, static_cast<std::uint64_t>(sequence)));
  });
  return runs;
}

}  // namespace specdec::test_support
