#pragma once

#include <cstdint>
#include <span>

/// The inner loops of sim/synthetic_rounds.hpp, one copy per instruction set, chosen at run time. They count in
/// integers, so every instruction set gives the same counts. Inputs are not checked here.
namespace specdec::sim::kernels {

/// 2^32 times a probability of an alias table's column; 2^31 times an acceptance probability.
inline constexpr double column_unit = 0x1p32;
inline constexpr double acceptance_unit = 0x1p31;

/// Sequences processed side by side; a multiple of every instruction set's lanes.
inline constexpr std::int64_t sequences_per_chunk = 64;
inline constexpr std::int64_t max_synthetic_gamma = 32;

/// Words of Philox4x32-10 blocks: words[4 i + j] is word j of the block of counter {c0, c1, first + i, c3}.
/// Shape: words (4 n), a whole number of blocks.
/// @param key      low half in the low 32 bits, as RandomStream's seed
/// @param low      counter words 0 and 1, as RandomStream's sequence
void philox_words(std::uint64_t key, std::uint64_t low, std::uint32_t first, std::uint32_t c3,
                  std::span<std::uint32_t> words);

/// The number of words with floor(word / 2) < threshold.
/// @param threshold  [0, 2^31]
std::int64_t count_below(std::span<const std::uint32_t> words, std::uint32_t threshold);

/// Rounds of Algorithm 1 for some sequences of one seed.
struct AliasRounds {
  /// Two words per column, the tables of q, p and the residual in this order, `vocab` columns each:
  /// threshold | alias << 32 and acceptance of the column's own token | acceptance of the alias << 32.
  const std::uint64_t* columns = nullptr;
  std::uint64_t vocab = 0;
  std::uint64_t gamma = 0;  ///< [0, max_synthetic_gamma]
  std::uint64_t seed = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t sequences = 0;  ///< [1, sequences_per_chunk]
  std::uint64_t rounds = 0;     ///< rounds per sequence
};

/// Adds to accepted_counts (gamma + 1) and, unless it is empty, to token_counts (vocab + 1),
/// whose last place counts the draws that emit nothing.
void run_alias_rounds(const AliasRounds& run, std::span<std::int64_t> accepted_counts,
                      std::span<std::int64_t> token_counts);

}  // namespace specdec::sim::kernels
