#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "sim/validation/compare.hpp"
#include "sim/validation/method_decoder.hpp"
#include "traces/sharded_recording.hpp"

/// One method run in shares: each sequence is a function of its number alone, so that the sequences that several runs
/// decoded are those of one run.
namespace specdec::validation {

/// Results of a share of the sequences of one method.
struct MethodShare {
  /// By sequence; empty for a method that runs in independent rounds.
  std::map<std::int64_t, MethodRun> runs;
  /// [n]: rounds that accepted n drafts, of such a method; else empty. Shape: (gamma + 1)
  std::vector<std::int64_t> accepted_counts;
  /// That it took.
  double seconds = 0;

  /// @throws std::invalid_argument if a sequence is in both, or one has rounds and the other has sequences
  void merge(const MethodShare& other);

  /// See analysis/core/state_archive.hpp.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(runs, accepted_counts, seconds);
    for (const auto& [sequence, run] : runs) archive.require(sequence >= 0);
    constexpr std::int64_t many = std::int64_t{1} << 42;
    for (const std::int64_t count : accepted_counts) archive.require(0 <= count && count < many);
  }
};

/// Decodes the sequences whose number leaves `shard.index` when divided by `shard.of`, or runs the rounds of groups of
/// sequences with such numbers.
/// @param hooks  an interrupted run ends after the sequences in progress
/// @throws std::invalid_argument for a recording, which other functions share out, and if a precision is asked for,
///   which no share alone can reach
/// @throws as compare
MethodShare run_share(const Method& method, const MethodContext& context, const traces::Shard& shard,
                      const core::RunHooks& hooks = {});

/// The results of the sequences that shares gave, as compare has them; none if they are empty.
/// @throws std::invalid_argument if the method has other sequences or rounds
ComparedMethods results_of(const Method& method, const MethodContext& context, const MethodShare& share);

}  // namespace specdec::validation
