#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/exits.hpp"
#include "sim/transformer/transformer_pass.hpp"

namespace specdec::sim {

struct TransformerOptions {
  /// Threads that share the work of one call, the caller's included; 1 starts none.
  int threads = 1;
  /// Number of blocks that are run, starting with the first, before the final norm and the head; 0 for all.
  std::int64_t layers = 0;
  /// If not all blocks are run: trained exits, of which the one after the last block is used; null for a plain
  /// exit, straight to the final norm.
  std::shared_ptr<const ExitWeights> exits = nullptr;
  /// Keep the state of every position, for features().
  bool keep_features = false;
};

/// A decoder-only transformer with its key/value cache: one prefix, scored block by block.
///
/// Every sum is computed in one order whatever the block, the chunking of long blocks and the number of threads: a row
/// depends on its prefix alone, bit for bit. Machines whose vector unit has fused multiply-add (AVX2, AVX-512) give the
/// same bits; others differ by rounding.
///
/// The cache is f32 and grows with the prefix; roll_back is O(1). Several objects may share one set of weights; each
/// is used by one thread at a time.
class Transformer final : public LanguageModel {
 public:
  /// @throws std::domain_error if options.threads < 1 or options.layers is outside [0, the checkpoint's layers], or
  ///   options.exits has no exit after that many blocks
  /// @throws std::invalid_argument if options.exits was trained for another shape
  explicit Transformer(std::shared_ptr<const TransformerWeights> weights, const TransformerOptions& options = {});

  /// The checkpoint's shape, whatever options.layers is.
  const TransformerConfig& config() const { return pass_.config(); }
  std::int64_t vocab_size() const override { return config().vocab_size; }
  std::int64_t max_length() const override { return config().max_length; }
  std::int64_t length() const override { return length_; }
  /// options.keep_features.
  bool keeps_features() const { return keeps_features_; }
  /// 2 * (parameters of the matrices a token is multiplied by: projections and feed-forward of the blocks that are
  /// run, exit, head). Excludes norms, activations, softmax, and attention over the prefix.
  double operations_per_token() const override;

  /// Appends `block` to the prefix and writes the next-token distributions after its last rows.size() / vocab_size()
  /// tokens, at temperature 1. Shape: (n, vocab_size), rows sum to 1 within 1e-12.
  /// @throws std::invalid_argument if rows is not a whole number of rows or has more rows than the block has tokens
  /// @throws std::domain_error if a token is outside the vocabulary or the prefix would exceed max_length(); the
  ///   prefix is then unchanged
  /// @throws std::domain_error if a logit is not finite (the weights overflow f32)
  /// Accuracy: given the logits, relative error of a probability <= 3e-7 + 6e-8 d, with d how far its logit lies below
  ///   the row's largest; from d = 87 on it may be 0.
  void score(std::span<const Token> block, std::span<double> rows) override;

  /// The same, but writes the unmodified logits. Shape: (n, vocab_size).
  /// Accuracy: |error| <= 1e-4 * max |logit| of the row against a forward pass in f32 by PyTorch (the tests' bound).
  void score_logits(std::span<const Token> block, std::span<float> logits);

  /// Like score, but each position takes a vector instead of its token's embedding, as heads that read another
  /// model's states do. Shape: vectors (n, config().width).
  /// @throws std::invalid_argument if vectors is not a whole number of vectors; else as score
  void score_vectors(std::span<const float> vectors, std::span<double> rows);

  /// The state of a position of the prefix after the exit and the final norm: the input of the head. Kept for
  /// every position, including those without requested rows, as long as its prefix is; the span is valid until the next
  /// call of score. Shape: (config().width).
  /// @throws std::invalid_argument if options.keep_features is off
  /// @throws std::domain_error if position is outside [0, length() - 1]
  std::span<const float> features(std::int64_t position) const;

  /// Keeps the first `length` tokens. @throws std::domain_error if length is outside [0, length()]
  void roll_back(std::int64_t length) override;

 private:
  /// The input of a block: tokens, or vectors instead of their embeddings. Shape: vectors (count, width).
  struct Inputs {
    std::size_t count;
    std::span<const Token> tokens;
    std::span<const float> vectors;
  };

  /// Appends the block; calls emit(row, logits) for each of its last `rows` positions, possibly on several threads.
  template <class Emit>
  void append(const Inputs& block, std::size_t rows, const Emit& emit);
  void append_and_write(std::string_view function, const Inputs& block, std::span<double> rows);
  /// Copies positions [first, first + count) of the block, which start at `position`, into the pass.
  void embed(const Inputs& block, std::size_t first, std::size_t count, std::size_t position);
  /// Copies the normalised states of the current tokens, the first of which is at `position`.
  void keep_features(std::size_t tokens, std::size_t position);

  /// Blocks that are run.
  std::int64_t layers_;
  std::shared_ptr<const ExitHead> exit_;
  bool keeps_features_;
  TransformerPass pass_;
  std::int64_t length_ = 0;
  /// Shape: (positions, width); empty unless they are kept.
  std::vector<float> features_;
};

}  // namespace specdec::sim
