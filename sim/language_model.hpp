#pragma once

#include <cstdint>
#include <span>

namespace specdec::sim {

using Token = std::int32_t;

inline std::int64_t length_of(std::span<const Token> tokens) { return static_cast<std::int64_t>(tokens.size()); }

/// The interface that a decoder needs: a prefix that grows by scored blocks and shrinks by roll-back.
///
/// A model holds a prefix of tokens. `score(block, rows)` appends `block` to it in one call and writes the
/// next-token distributions after each of the LAST rows.size() / vocab_size() tokens of the block:
/// rows has shape (n, vocab_size), 0 <= n <= block.size(), row-major, each row >= 0 and summing to 1
/// (temperature 1, nothing cut off; see core/standardisation.hpp). A row depends on its prefix alone, bit for bit,
/// whatever the blocks in which the prefix was scored. `roll_back(length)` keeps the first `length` tokens.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  /// Number of tokens in the vocabulary, >= 1.
  virtual std::int64_t vocab_size() const = 0;
  /// Longest prefix that the model accepts, in tokens.
  virtual std::int64_t max_length() const = 0;
  /// Tokens in the current prefix.
  virtual std::int64_t length() const = 0;
  /// Arithmetic operations to score one token (2 per multiply-add), dimensionless count; 0 for table look-ups.
  virtual double operations_per_token() const = 0;
  /// Appends `block` to the prefix and writes the distributions after its last tokens.
  /// @throws std::invalid_argument if rows is not a whole number of rows or has more rows than the block has tokens
  /// @throws std::domain_error if a token is outside the vocabulary or the prefix would exceed max_length()
  virtual void score(std::span<const Token> block, std::span<double> rows) = 0;
  /// Keeps the first `length` tokens of the prefix. @throws std::domain_error if length is outside [0, length()]
  virtual void roll_back(std::int64_t length) = 0;
};

}  // namespace specdec::sim
