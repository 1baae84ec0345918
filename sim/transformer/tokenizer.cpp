#include "sim/transformer/tokenizer.hpp"

#include <sentencepiece_processor.h>

#include <utility>

#include "analysis/core/checks.hpp"
#include "traces/file_error.hpp"

namespace specdec::sim {

struct Tokenizer::Processor {
  sentencepiece::SentencePieceProcessor sentencepiece;
};

namespace {

std::optional<Token> if_present(int id) { return id < 0 ? std::nullopt : std::optional<Token>(id); }

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Processor> processor) : processor_(std::move(processor)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  auto processor = std::make_unique<Processor>();
  const auto status = processor->sentencepiece.Load(path.string());
  if (!status.ok()) {
    throw traces::FileError(path, "tokenizer", "refused (" + status.ToString() + ")", "a SentencePiece model");
  }
  return Tokenizer(std::move(processor));
}

std::int64_t Tokenizer::vocab_size() const { return processor_->sentencepiece.GetPieceSize(); }
std::optional<Token> Tokenizer::begin_token() const { return if_present(processor_->sentencepiece.bos_id()); }
std::optional<Token> Tokenizer::end_token() const { return if_present(processor_->sentencepiece.eos_id()); }

std::vector<Token> Tokenizer::encode(std::string_view text, bool add_begin) const {
  std::vector<Token> tokens = processor_->sentencepiece.EncodeAsIds(text);
  if (const auto begin = begin_token(); add_begin && begin) tokens.insert(tokens.begin(), *begin);
  return tokens;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  for (const Token token : tokens)
    core::require_in("Tokenizer::decode", "token", std::int64_t{token}, 0, vocab_size() - 1);
  return processor_->sentencepiece.DecodeIds({tokens.begin(), tokens.end()});
}

std::string Tokenizer::piece(Token token) const {
  core::require_in("Tokenizer::piece", "token", std::int64_t{token}, 0, vocab_size() - 1);
  const auto& model = processor_->sentencepiece;
  if (model.IsControl(token)) return "";
  const std::string& marked = model.IdToPiece(token);
  // Byte pieces read <0x41>; decoding one alone would replace bytes that are not UTF-8 by themselves.
  if (model.IsByte(token)) return std::string(1, static_cast<char>(std::stoi(marked.substr(3, 2), nullptr, 16)));
  constexpr std::string_view word_mark = "\u2581";
  std::string text;
  std::size_t from = 0;
  for (std::size_t at; (at = marked.find(word_mark, from)) != std::string::npos; from = at + word_mark.size()) {
    text.append(marked, from, at - from).push_back(' ');
  }
  text.append(marked, from);
  return text;
}

}  // namespace specdec::sim
