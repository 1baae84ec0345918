#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Algorithm 1 simulated over recorded texts: token t is accepted as a draft with probability a_t, by a uniform number
/// of its own. A replay discards nothing, so the number is a function of (seed, sequence, place) alone: runs of
/// different gammas and policies share their random numbers, and results do not depend on how the text is read.
namespace specdec::sim {

/// Rule that ends a round's drafts. Threshold and product use the draft's probability of the token it has sampled,
/// and stop AFTER it: the token is still submitted, since leaving it out because of its own probability would not be
/// lossless.
enum class DraftPolicy {
  fixed,      ///< never stops
  threshold,  ///< stops if that probability is below the threshold
  product,    ///< stops if the product of the round's probabilities so far is below the threshold
  feedback,   ///< stops at gamma, which rises by 2 after a fully accepted round, else falls by 1, to at least 1
};

struct ReplayedPolicy {
  /// Largest number of drafted tokens of a round, >= 0; with feedback, of a sequence's first round.
  std::int64_t gamma = 5;
  DraftPolicy policy = DraftPolicy::fixed;
  /// [0, 1]; for the policies that have one.
  double threshold = 0.5;
};

/// One round over a recorded text.
struct ReplayedRound {
  /// Place of its first token in the text.
  std::int64_t place = 0;
  std::int64_t accepted = 0;
  /// accepted + 1: the target's own token is the last.
  std::int64_t emitted = 0;
  bool rejected = false;
  /// Tokens drafted by policies without a threshold, min(gamma, tokens left - 1). Where others stop behind a rejected
  /// token the recording does not tell.
  std::int64_t drafted = 0;

  friend bool operator==(const ReplayedRound&, const ReplayedRound&) = default;
};

/// Sums over rounds. Plain data.
struct ReplayCounters {
  std::int64_t tokens = 0;
  std::int64_t rounds = 0;
  std::int64_t accepted = 0;
  std::int64_t drafted = 0;
  /// Rounds in which the draft in slot j (0-based) was accepted.
  std::vector<std::int64_t> accepted_at;

  void add(const ReplayedRound& round);
  friend bool operator==(const ReplayCounters&, const ReplayCounters&) = default;
};

/// The simulation's inputs for consecutive positions. Shapes: (positions), acceptance (positions, depths).
struct ReplayedPositions {
  std::span<const std::int64_t> sequence;
  std::span<const std::int64_t> place;
  /// a_t in [0, 1]; a token at depth j + 1 of its round uses column min(j, depths - 1).
  std::span<const double> acceptance;
  std::int64_t depths = 1;
  /// q_t(x_t), for the policies that use it.
  std::span<const double> draft_probability;
};

/// One simulated run, in one pass over the recording.
class ReplaySimulation {
 public:
  /// Receives every round, in order, as soon as its figures are final.
  using OnRound = std::function<void(const ReplayedRound&)>;

  /// @throws std::domain_error if a field of `policy` is out of range
  ReplaySimulation(const ReplayedPolicy& policy, std::uint64_t seed, OnRound on_round = {});

  /// Adds the next positions; a sequence may continue in the next call.
  /// @throws std::invalid_argument if a column's length does not agree, or a column that the policy needs is missing
  /// @throws std::domain_error naming sequence and place if an entry is NaN or outside [0, 1]
  void add(const ReplayedPositions& positions);
  /// Ends the last sequence.
  void finish();

  const ReplayCounters& counters() const { return counters_; }

 private:
  struct Unsettled {
    ReplayedRound round;
    std::int64_t gamma;
  };

  bool looks_at_probabilities() const;
  void take(const ReplayedPositions& positions, std::size_t i);
  void end_round();
  bool policy_stops(const ReplayedPositions& positions, std::size_t i);
  void end_sequence();
  void settle(bool at_end);

  ReplayedPolicy policy_;
  std::uint64_t seed_;
  OnRound on_round_;
  ReplayCounters counters_;

  std::optional<std::int64_t> sequence_;
  std::int64_t length_ = 0;  // positions of the sequence read so far
  std::int64_t gamma_;       // gamma of the round
  bool in_round_ = false;
  bool stopped_ = false;  // true if the policy drafts no more in this round
  double product_ = 1;
  ReplayedRound round_;
  std::vector<Unsettled> unsettled_;  // rounds that may still reach the end of the text
};

}  // namespace specdec::sim
