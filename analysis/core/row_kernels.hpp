#pragma once

#include <cstddef>

#include "traces/formats/safetensors.hpp"

/// The vector kernels behind row_statistics.hpp, which documents what they compute; use that header instead.
namespace specdec::core::row_kernels {

/// Staged rows lie in whole blocks of this many tokens; entries beyond the vocabulary are 0.
inline constexpr std::size_t block_tokens = 512;
/// Logarithms up to this one mean probability 0: engines write -9999 for a missing number, which bfloat16 rounds
/// to this value.
inline constexpr float floor_logarithm = -9984;
/// Logarithms beyond this in a staged row are out of the kernels' range.
inline constexpr float largest_logarithm = 1e5F;

/// A row in working memory: token i has the probability values[i] * (scale[b] + scale_low[b]), with b its block. The
/// value is 0 exactly if the stored row says probability 0.
struct StagedRow {
  const float* values = nullptr;
  const float* scale = nullptr;
  const float* scale_low = nullptr;
};

/// Sums over a pair of rows; logarithms of subnormal probabilities are those of the least normal one.
struct PairSums {
  double overlap = 0;
  double missing = 0;
  double rejected = 0;
  double target_logs = 0;         ///< sum p log(p)
  double acceptance_squares = 0;  ///< sum min(p, q)^2 / p
  double surprisal_squares = 0;   ///< sum p log(p)^2
  float target_max = -1;
  float draft_max = -1;
  /// The largest entries lie in [first, first + block_tokens).
  std::size_t target_max_first = 0;
  std::size_t draft_max_first = 0;
  bool negative = false;  ///< an entry is below 0
};

/// A NaN or infinite entry makes at least one of missing and rejected NaN or infinite.
/// @param type  the element type of both rows
void sum_stored(traces::ElementType type, const std::byte* target, const std::byte* draft, std::size_t vocab,
                PairSums& out);
void sum_staged(const StagedRow& target, const StagedRow& draft, std::size_t vocab, PairSums& out);

/// One block of a row of logarithms being converted to probabilities: value[i] = exp(logarithm[i]) / 2^exponent.
struct ExponentialBlock {
  float largest = 0;  ///< the largest logarithm; -inf if every token of the block has probability 0
  int exponent = 0;
  double sum = 0;  ///< the sum of the values
};

/// @param values  room for whole blocks, aligned to 64 bytes
/// @param blocks  one per block
/// @return false if an entry is NaN or above largest_logarithm; all outputs are then unspecified
bool exponentials(traces::ElementType type, const std::byte* logarithms, std::size_t vocab, float* values,
                  ExponentialBlock* blocks);

/// Sums over a pair for one lenience l.
struct LenienceSums {
  double accepted = 0;  ///< sum min(p / l, q)
  double rejected = 0;  ///< sum max(0, q - p / l)
  double excess = 0;    ///< sum min(p / l, q) - min(p, q)
  double missing = 0;   ///< sum max(0, p - l q)
};

/// The number of leniences processed together; `inverse` holds their reciprocals.
inline constexpr std::size_t leniences_at_once = 4;
void sum_leniences(const StagedRow& target, const StagedRow& draft, std::size_t vocab, const float* leniences,
                   const float* inverse, LenienceSums* out);
/// sum max(0, min(p / l, q) + kappa max(0, p - l q) - p), the lenient residual's total variation.
void sum_lenient_distances(const StagedRow& target, const StagedRow& draft, std::size_t vocab, const float* leniences,
                           const float* inverse, const float* kappa, double* out);

/// Sums over one block of a pair.
struct ConfidenceBlock {
  double drafted = 0;     ///< sum q
  double confidence = 0;  ///< sum q^2
  double accepted = 0;    ///< sum min(p, q)
  float largest = 0;      ///< max q
};

/// @param blocks  one per block
void sum_confidences(const StagedRow& target, const StagedRow& draft, std::size_t vocab, ConfidenceBlock* blocks);

}  // namespace specdec::core::row_kernels
