#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Texts decoded together, round by round, each verifying as many drafts as a rule of the whole batch gives it.
namespace specdec::sim {

/// One text to decode, as a replay sees it: its token at a place, taken as a draft, is accepted with a probability that
/// depends on nothing else.
struct BatchedText {
  /// Its stream of random numbers.
  std::int64_t sequence = 0;
  /// Tokens to decode, >= 1.
  std::int64_t tokens = 1;
  /// Drafts as far into a round as acceptance is known by depth, >= 1.
  std::int64_t depths = 1;
  /// In [0, 1] where a round may use it; a draft at depth j (0-based) of its round uses column min(j, depths - 1).
  /// Shape: (tokens, depths), or (1, depths) where every place is alike.
  std::span<const double> acceptance = {};
  /// Group that it shares with other texts, for rules that learn by group; >= 0.
  std::int64_t group = 0;

  double acceptance_at(std::int64_t place, std::int64_t depth) const;
};

/// A text of the batch before a round.
struct BatchedPlace {
  /// Its number among all texts, and the text.
  std::size_t number = 0;
  const BatchedText* text = nullptr;
  /// Tokens that it has already.
  std::int64_t place = 0;

  /// Drafts that could be of use: what is left but for the target's own token.
  std::int64_t most_drafts() const { return text->tokens - place - 1; }
};

/// The drafts of a round.
struct BatchDecision {
  /// Drafted for every text.
  std::int64_t drafted = 0;
  /// Verified of each, at most `drafted` and what could be of use. Shape: (texts of the batch)
  std::vector<std::int64_t> verified;
};

/// Decides before each round and sees what became of it.
class BatchRule {
 public:
  virtual ~BatchRule() = default;
  virtual BatchDecision decide(std::span<const BatchedPlace> batch) = 0;
  /// @param accepted  number for each text; shape (texts of the batch)
  virtual void observe(std::span<const BatchedPlace> batch, const BatchDecision& decision,
                       std::span<const std::int64_t> accepted) = 0;
};

/// The cost of a round: `sequences` texts, `drafted` tokens drafted for each, `verified` drafts verified of all
/// together. > 0
using BatchCost = std::function<double(std::int64_t sequences, std::int64_t drafted, std::int64_t verified)>;

/// The outcome of one text.
struct BatchedRun {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  std::int64_t drafted = 0;
  std::int64_t verified = 0;
  std::int64_t accepted = 0;
  /// Its share of the cost of its rounds: that of a round divided evenly.
  double cost = 0;
  /// The drafts that were judged, all before them being accepted: their number, and their probabilities' sum.
  std::int64_t judged = 0;
  double accepted_expected = 0;
  /// [j]: steps that verified j + 1 drafts or more, and that accepted so many.
  std::vector<std::int64_t> verified_at;
  std::vector<std::int64_t> accepted_at;
};

/// Decodes all texts, up to `batch` at a time in their order: when one ends, the next takes its place. Token t of
/// sequence s is judged at most once, by the uniform (seed, s, t, 0, acceptance), so that all rules share their random
/// numbers.
///
/// @param batch        >= 1
/// @param interrupted  asked before each round; if it says so, what was decoded until then is returned. May be empty.
/// @return one entry per text, in order
/// @throws std::domain_error if the batch or a probability is out of range; std::invalid_argument if a text's shapes do
///   not agree, or the rule decides on what it must not
std::vector<BatchedRun> decode_in_batches(std::span<const BatchedText> texts, std::int64_t batch, BatchRule& rule,
                                          const BatchCost& cost, std::uint64_t seed,
                                          const std::function<bool()>& interrupted = {});

}  // namespace specdec::sim
