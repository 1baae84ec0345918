#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/drafting.hpp"

/// Algorithm 1 simulated over recorded texts: token t is accepted as a draft with probability a_t, by a uniform number
/// of its own. A replay discards nothing, so the number is a function of (seed, sequence, place) alone: runs of
/// different gammas and policies share their random numbers.
namespace specdec::sim {

struct ReplayedPolicy {
  /// Largest number of drafted tokens of a round, >= 0; if the policy changes it, of a sequence's first round.
  std::int64_t gamma = 5;
  /// What it stops before, which needs rows, is not replayed.
  DraftingPolicy policy = {};
};

/// One round over a recorded text.
struct ReplayedRound {
  /// Place of its first token in the text.
  std::int64_t place = 0;
  std::int64_t accepted = 0;
  /// accepted + 1: the target's own token is the last.
  std::int64_t emitted = 0;
  bool rejected = false;
  /// Tokens drafted by policies that stop after no token, min(gamma, tokens left - 1). Where others stop behind a
  /// rejected token the recording does not tell.
  std::int64_t drafted = 0;

  friend bool operator==(const ReplayedRound&, const ReplayedRound&) = default;
};

/// A recorded text, by its number in the recording. Shapes: (tokens), acceptance (tokens, depths).
struct ReplayedText {
  std::int64_t sequence = 0;
  /// a_t in [0, 1]; a token at depth j + 1 of its round uses column min(j, depths - 1).
  std::span<const double> acceptance;
  std::int64_t depths = 1;
  /// q_t(x_t), for the policies that use it.
  std::span<const double> draft_probability = {};
};

/// The rounds of one simulated run over a text, in order.
/// @throws std::domain_error if a field of `policy` is out of range, or naming sequence and place if an entry that a
///   round could use is NaN or outside [0, 1]
/// @throws std::invalid_argument if a column's length does not agree, or a column that the policy needs is missing
std::vector<ReplayedRound> replay_rounds(const ReplayedPolicy& policy, std::uint64_t seed, const ReplayedText& text);

}  // namespace specdec::sim
