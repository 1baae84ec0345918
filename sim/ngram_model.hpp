#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/ngram_tables.hpp"
#include "sim/table_models.hpp"

namespace specdec::sim {

/// n-gram model of any order, trained from texts: each order is discounted by a constant and backs off to the one
/// below, the lowest one to the uniform distribution, so that no token has probability 0.
///
///   P_k(x | c) = (max(0, n(c,x) - D) + R(c) P_(k-1)(x | c')) / n(c),   R(c) = sum_x min(D, n(c,x))
///
/// c are the last k tokens, c' the last k - 1, n counts in all texts; if n(c) = 0 or the prefix is shorter,
/// P_k = P_(k-1); P_(-1) = 1 / vocab. Copies share the counts.
///
/// Source:   Ney, Essen, Kneser 1994 (absolute discounting, interpolated)
class NgramModel : public TokenPrefix {
 public:
  /// @param texts     token ids; no n-gram spans two texts
  /// @param order     n, tokens of an n-gram: 1 is the unigram model, [1, 64]
  /// @param discount  D, [0, 1]
  /// @throws std::domain_error if a token is outside the vocabulary or a parameter out of range
  /// Time: O(order^2 n log n) for n tokens in all; memory O(order n)
  NgramModel(std::int64_t vocab_size, std::span<const std::vector<Token>> texts, std::int64_t order, double discount,
             std::int64_t max_length = unlimited_length);

  /// The bigram model of a file, which backs off to its unigram distribution: interpolated Kneser-Ney where that has
  /// continuation counts.
  /// @param tables  as read_ngram_tables checked them
  explicit NgramModel(const NgramTables& tables, std::int64_t max_length = unlimited_length);

  void score(std::span<const Token> block, std::span<double> rows) override;

 private:
  struct Levels;
  std::shared_ptr<const Levels> levels_;
};

}  // namespace specdec::sim
