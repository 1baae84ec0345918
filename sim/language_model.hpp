#pragma once

#include <concepts>
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
template <class M>
concept LanguageModel = requires(M& model, const M& read_only, std::span<const Token> block, std::span<double> rows,
                                 std::int64_t length) {
  { read_only.vocab_size() } -> std::convertible_to<std::int64_t>;
  { read_only.max_length() } -> std::convertible_to<std::int64_t>;
  { read_only.length() } -> std::convertible_to<std::int64_t>;
  { read_only.operations_per_token() } -> std::convertible_to<double>;
  model.score(block, rows);
  model.roll_back(length);
};

/// A non-owning handle to any LanguageModel, so that decoders are compiled once.
/// The model must outlive the handle. Calls forward as they are.
class LanguageModelRef {
 public:
  template <LanguageModel M>
  requires(!std::same_as<M, LanguageModelRef>) LanguageModelRef(M& model)
      : model_(&model), table_(&table_for<M>) {}  // NOLINT: a reference converts silently

  /// Number of tokens in the vocabulary, >= 1.
  std::int64_t vocab_size() const { return table_->vocab_size(model_); }
  /// Longest prefix that the model accepts, in tokens.
  std::int64_t max_length() const { return table_->max_length(model_); }
  /// Tokens in the current prefix.
  std::int64_t length() const { return table_->length(model_); }
  /// Arithmetic operations to score one token (2 per multiply-add), dimensionless count; 0 for table look-ups.
  double operations_per_token() const { return table_->operations_per_token(model_); }
  /// Appends `block` to the prefix and writes the distributions after its last tokens; see LanguageModel.
  /// @throws std::invalid_argument if rows is not a whole number of rows or has more rows than the block has tokens
  /// @throws std::domain_error if a token is outside the vocabulary or the prefix would exceed max_length()
  void score(std::span<const Token> block, std::span<double> rows) { table_->score(model_, block, rows); }
  /// Keeps the first `length` tokens of the prefix. @throws std::domain_error if length is outside [0, length()]
  void roll_back(std::int64_t length) { table_->roll_back(model_, length); }

 private:
  struct Table {
    std::int64_t (*vocab_size)(const void*);
    std::int64_t (*max_length)(const void*);
    std::int64_t (*length)(const void*);
    double (*operations_per_token)(const void*);
    void (*score)(void*, std::span<const Token>, std::span<double>);
    void (*roll_back)(void*, std::int64_t);
  };

  template <class M>
  static constexpr Table table_for = {
      [](const void* m) -> std::int64_t { return static_cast<const M*>(m)->vocab_size(); },
      [](const void* m) -> std::int64_t { return static_cast<const M*>(m)->max_length(); },
      [](const void* m) -> std::int64_t { return static_cast<const M*>(m)->length(); },
      [](const void* m) -> double { return static_cast<const M*>(m)->operations_per_token(); },
      [](void* m, std::span<const Token> block, std::span<double> rows) { static_cast<M*>(m)->score(block, rows); },
      [](void* m, std::int64_t length) { static_cast<M*>(m)->roll_back(length); }};

  void* model_;
  const Table* table_;
};

}  // namespace specdec::sim
