#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "sim/decoding.hpp"
#include "sim/generation.hpp"
#include "sim/table_models.hpp"

namespace specdec::sim {

/// The number of sequences to run, and of threads.
struct MonteCarloOptions {
  /// >= 0
  std::int64_t sequences = 1000;
  /// [1, 1024]
  std::int64_t threads = 1;
  std::uint64_t seed = 0;
};

/// Decodes sequence number `sequence` with its own stream, RandomStream(seed, sequence); owns its models.
using SequenceDecoder = std::function<Generation(std::int64_t sequence, const RandomStream& stream)>;

/// Runs sequences 0, 1, ..., n - 1 on threads and passes the results on in that order, on the calling thread.
/// The input of `consume` does not depend on the number of threads, as long as a decoder's result depends on its
/// arguments alone. Memory is bounded: results are passed on in portions.
///
/// @param make_decoder  called once per thread, on the calling thread
/// @throws std::domain_error if an option is out of range; the exception of the first sequence whose decoder throws
void for_each_sequence(const MonteCarloOptions& options, const std::function<SequenceDecoder()>& make_decoder,
                       const std::function<void(std::int64_t sequence, const Generation&)>& consume);

/// Algorithm 1 over many independent sequences of one prompt: the counters of all of them.
/// Bit-identical for any number of threads.
/// @throws as for_each_sequence and decode_speculatively
Counters simulate(const TablePair& pair, std::span<const Token> prompt, const DecodingOptions& decoding,
                  const MonteCarloOptions& options);

}  // namespace specdec::sim
