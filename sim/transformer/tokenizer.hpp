#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

/// A SentencePiece tokenizer (`tokenizer.model`).
class Tokenizer {
 public:
  /// @throws FileError if the file cannot be read or is not a SentencePiece model
  static Tokenizer load(const std::filesystem::path& path);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  std::int64_t vocab_size() const;
  /// The beginning- and end-of-sequence tokens, if the model has them.
  std::optional<Token> begin_token() const;
  std::optional<Token> end_token() const;

  /// The tokens of a text, after the beginning-of-sequence token if `add_begin` is true and the model has one.
  std::vector<Token> encode(std::string_view text, bool add_begin) const;
  /// The text of a sequence of tokens; control tokens have none. @throws std::domain_error on a token out of range
  std::string decode(std::span<const Token> tokens) const;
  /// The piece of one token as it appears inside a text: the word mark is a space, a byte piece is its byte, a control
  /// token is empty. @throws std::domain_error on a token out of range
  std::string piece(Token token) const;

 private:
  struct Processor;
  explicit Tokenizer(std::unique_ptr<Processor> processor);
  std::unique_ptr<Processor> processor_;
};

}  // namespace specdec::sim
