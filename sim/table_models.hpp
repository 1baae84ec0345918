#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

/// What table models have in common: the tokens read, with the checks that every model makes.
class TokenPrefix : public LanguageModel {
 public:
  TokenPrefix(std::int64_t vocab_size, std::int64_t max_length);

  std::int64_t vocab_size() const override { return vocab_size_; }
  std::int64_t max_length() const override { return max_length_; }
  std::int64_t length() const override { return static_cast<std::int64_t>(tokens_.size()); }
  double operations_per_token() const override { return 0; }
  void roll_back(std::int64_t length) override;

 protected:
  /// LanguageModel::score, where `write(prefix, row)` writes the row after a prefix.
  template <class Write>
  void score_by(std::span<const Token> block, std::span<double> rows, const Write& write) {
    const std::size_t count = append(block, rows.size()), vocab = static_cast<std::size_t>(vocab_size_);
    const std::size_t first = tokens_.size() - count + 1;
    for (std::size_t i = 0; i < count; ++i)
      write(std::span<const Token>(tokens_).first(first + i), rows.subspan(i * vocab, vocab));
  }

 private:
  /// @return the number of rows that so many entries are
  std::size_t append(std::span<const Token> block, std::size_t entries);

  std::int64_t vocab_size_;
  std::int64_t max_length_;
  std::vector<Token> tokens_;
};

constexpr std::int64_t unlimited_length = std::numeric_limits<std::int64_t>::max();

/// A model whose next-token distribution is looked up by the last `order` tokens: exact, for enumeration and tests.
/// At the start of a text, with fewer tokens, it is looked up by all of them, so a large order makes the
/// distribution a function of the whole prefix. Copies share the table.
class ContextTableModel : public TokenPrefix {
 public:
  /// Number of contexts: 1 for order 0, else vocab + vocab^2 + ... + vocab^order.
  /// @throws std::domain_error if vocab_size < 1, order < 0 or the number exceeds 2^31
  static std::int64_t context_count(std::int64_t vocab_size, std::int64_t order);

  /// The index of a context: shorter ones first, those of one length in lexical order, oldest token first.
  static std::int64_t context_index(std::int64_t vocab_size, std::span<const Token> context);

  /// Shape: rows (context_count(vocab_size, order), vocab_size), row-major, rows sum to 1.
  /// @throws std::invalid_argument if rows has another size
  /// @throws std::domain_error if an entry is negative or NaN, or a row's sum differs from 1 by more than 1e-9
  ContextTableModel(std::int64_t vocab_size, std::int64_t order, std::vector<double> rows,
                    std::int64_t max_length = unlimited_length);

  void score(std::span<const Token> block, std::span<double> rows) override;

  /// The distribution after `prefix`, which has at least one token unless the order is 0.
  std::span<const double> row(std::span<const Token> prefix) const;

 private:
  std::int64_t order_;
  std::shared_ptr<const std::vector<double>> rows_;
};

/// Every token equally probable after every prefix. @throws std::domain_error if vocab_size < 1
ContextTableModel uniform_model(std::int64_t vocab_size);

/// The same distribution after every prefix. Shape: (vocab), sums to 1.
ContextTableModel unigram_model(std::vector<double> probabilities);

/// A target and a draft over one vocabulary, for simulation without trained models.
struct TablePair {
  ContextTableModel target;
  ContextTableModel draft;
};

/// The same p and the same q at every prefix, so that acceptances are independent with rate sum min(p, q).
/// Shape: both (vocab), sum to 1. @throws std::invalid_argument if they differ in length
TablePair fixed_pair(std::vector<double> target, std::vector<double> draft);

/// The first row of a random bigram pair (below) of any size, in the form that fixed_pair takes: target and draft.
/// @param vocab_size  [1, 2^24]
/// @throws std::domain_error if a parameter is out of range
std::pair<std::vector<double>, std::vector<double>> synthetic_row_pair(std::int64_t vocab_size, double noise,
                                                                       std::uint64_t seed);

/// A random bigram pair with a Zipf-like vocabulary.
///
///   target logit(x | c) = -ln(1 + x) + z(c,x),   draft logit = target logit + noise z'(c,x),   z, z' standard normal
///
/// @param vocab_size  [1, 4096]
/// @param noise       standard deviation of the draft's error in logits, [0, 100]; with 0 the two are equal
/// @throws std::domain_error if a parameter is out of range
TablePair synthetic_bigram_pair(std::int64_t vocab_size, double noise, std::uint64_t seed);

}  // namespace specdec::sim
