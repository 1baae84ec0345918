#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

// n-gram tables as a safetensors file, so that Python writes one with save_file(...):
//
//   __metadata__          {"format":"specdec-ngrams","version":"1","discount":"0.49"}
//   unigram.counts        I64 [V]      occurrences of each token
//   bigram.row_offsets    I32 [V + 1]  row c of the sparse count matrix is [offset c, offset c + 1)
//   bigram.tokens         I32 [n]      following tokens, ascending within a row
//   bigram.counts         I32 [n]      how often each follows, >= 1

/// Bigram counts by context, as rows of a sparse matrix (CSR).
/// Shape: row_starts (vocab + 1), from 0 to the number of entries, not descending; tokens and counts (entries), the
/// tokens of a row ascending, counts >= 1.
struct BigramCounts {
  std::vector<std::int64_t> row_starts;
  std::vector<Token> tokens;
  std::vector<double> counts;
};

/// The counts of an n-gram file, ready to be made into models.
struct NgramTables {
  /// Shape: (vocab), sums to 1.
  std::vector<double> unigram;
  BigramCounts bigram;
  /// Absolute discount of the bigram counts, [0, 1].
  double discount = 0;
};

/// Reads an n-gram file.
/// @throws FileError naming the tensor or metadata entry that is missing, has a wrong type or shape, or holds a number
///   out of range, with the offset of its first byte or of the number
NgramTables read_ngram_tables(const std::filesystem::path& path);

}  // namespace specdec::sim
