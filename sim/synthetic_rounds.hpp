#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"
#include "traces/sharded_recording.hpp"

/// Many rounds of speculative decoding without dependence on the context: at some ten million tokens per second and
/// core, for laws that only long runs distinguish. Models that see their prefix run in sim/decoding.hpp.
///
/// Random numbers: blocks of Philox4x32-10 in RandomStream's layout, key the seed, counter (sequence, round, slot,
/// purpose). Words 0 and 1 of a block choose a token. Two things differ from RandomStream: the acceptance of a draft
/// uses word 2 of that draft's block instead of a block of its own, which saves a third of all blocks; and the 64 bits
/// choose by an alias table, not by inverting the cumulative sum. No word is used twice. Rounds given a rate alone take
/// their uniforms from the words of blocks (sequence, round / 4, slot 0, acceptance), one word per round.
///
/// Counts are integers, so results are bit-identical for any number of threads.
namespace specdec::sim {

/// Alias tables of a target and a draft law, of the residual max(0, p - q), and the acceptance min(1, p/q).
///
/// Resolution: p and q are divided by their sums and rounded to multiples of 2^-32 / vocab, acceptances to multiples of
/// 2^-31, and a column is chosen by 64 random bits. Rounding a law moves it by at most 2^-33 in total variation, an
/// acceptance by 2^-32, the residual again by 2^-33, and 2 vocab 2^-64 comes from the 64 bits. In total the law of
/// emitted tokens is within 2^-30 of p in total variation and the acceptance within 2^-30 of sum min(p, q): 10^17
/// rounds do not reveal it. A token of probability 0 is never drawn; one below 2^-33 / vocab may become one.
///
/// Source:   Walker 1977, Vose 1991 (alias method); Leviathan et al. 2023, Algorithm 1
class AliasPair {
 public:
  static constexpr std::int64_t max_vocab = std::int64_t{1} << 24;

  /// @throws std::invalid_argument if the two differ in length
  /// @throws std::domain_error if there are more than max_vocab tokens
  AliasPair(const core::TargetDistribution& p, const core::DraftDistribution& q);

  std::int64_t vocab_size() const { return vocab_size_; }
  /// Shape: (3, vocab, 2), tables of q, p and the residual; of each column threshold | alias << 32, and acceptance of
  /// its own token | acceptance of the alias << 32.
  std::span<const std::uint64_t> columns() const { return columns_; }

 private:
  std::int64_t vocab_size_;
  std::vector<std::uint64_t> columns_;
};

/// The counts of a run; valid also if it was interrupted, then over the sequences that were finished.
struct SyntheticRounds {
  /// accepted_counts[n]: rounds that accepted n drafts. Shape: (gamma + 1)
  std::vector<std::int64_t> accepted_counts;
  /// Emitted tokens by token. Shape: (vocab), or empty if not requested.
  std::vector<std::int64_t> token_counts;
  bool interrupted = false;
  /// True if the requested precision was reached; false also if none was requested.
  bool precise = false;

  std::int64_t rounds() const;
  /// Emitted tokens: accepted drafts and one token of the target's per round.
  std::int64_t tokens() const;
  /// tokens / rounds, in [1, gamma + 1]; empty without rounds.
  std::optional<double> tokens_per_step() const;
  /// Standard error of tokens_per_step; rounds are independent. Empty for fewer than two rounds.
  std::optional<double> standard_error() const;
};

struct SyntheticRoundsOptions {
  /// Largest number of sequences; >= 1
  std::int64_t sequences = 1024;
  /// Rounds of each sequence, [1, 2^24]
  std::int64_t rounds_per_sequence = 4096;
  /// The share of the sequences, by groups of 64, that is run; the counts of all shares add up to those of the whole.
  traces::Shard shard = {};
  /// [1, 1024]
  std::int64_t threads = 1;
  std::uint64_t seed = 0;
  /// Count the emitted tokens too; only for a pair.
  bool count_tokens = false;
  /// End as soon as standard_error() <= until_relative_error * tokens_per_step(), > 0. This is checked after portions
  /// of sequences whose sizes depend on nothing else: 1024, and an eighth of what is done if that is more, up to
  /// 16384.
  std::optional<double> until_relative_error;
  /// Called by every thread before each 64 sequences, concurrently with others; returning true ends the run.
  std::function<bool()> interrupt;
  /// Receives the counts after each portion, on the calling thread.
  std::function<void(const SyntheticRounds&)> progress;
};

/// Rounds of Algorithm 1 on one fixed pair of laws: drafts by q, tested, corrected by the residual or followed by p.
///
/// @param gamma  drafted tokens per round, [0, 32]
/// @throws std::domain_error if gamma or an option is out of range
SyntheticRounds simulate_rounds(const AliasPair& pair, std::int64_t gamma, const SyntheticRoundsOptions& options);

/// Rounds in which every draft is accepted with the same probability: the number of accepted drafts is the largest
/// n <= gamma with u < alpha^n, with u one uniform of 31 bits per round. Each P(n or more) is off by at most 2^-32.
///
/// @param gamma  drafted tokens per round, [0, 32]
/// @throws std::domain_error if gamma or an option is out of range, or tokens are to be counted
SyntheticRounds simulate_rounds(const core::AcceptanceRate& alpha, std::int64_t gamma,
                                const SyntheticRoundsOptions& options);

}  // namespace specdec::sim
