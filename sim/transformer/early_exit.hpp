#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/language_model.hpp"
#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/exits.hpp"

namespace specdec::sim {

/// The measure by which a token may leave early; at most 1.
enum class ExitConfidence {
  softmax_response,  ///< the largest probability minus the second largest, by the exit's logits
  state_saturation   ///< the cosine between the states after a block and after the one before, from the second on
};

struct EarlyExitOptions {
  /// Threads that share the work of one call, the caller's included; 1 starts none.
  int threads = 1;
  /// Longest prefix; 0 stands for the checkpoint's own limit.
  std::int64_t max_length = 0;
  ExitConfidence confidence = ExitConfidence::softmax_response;
  /// A token leaves after the first block whose confidence is at least this, [0, 1].
  double threshold = 0.9;
  /// Tokens leave only at these exits; null for plain exits after every block.
  std::shared_ptr<const ExitWeights> exits = nullptr;
};

/// A transformer in which every token leaves at the first block with enough confidence (confident adaptive language
/// modelling): its distribution is the exit's, and the skipped blocks compute their keys and values from the state
/// with which it left. A LanguageModel; its law is not that of the transformer.
///
/// Tokens that may leave are processed one by one. A row depends on its prefix, on the position set by
/// run_all_blocks_before, and on nothing else, bit for bit.
///
/// Source:   Schuster et al. 2022, "Confident adaptive language modeling"; one threshold for all positions
class EarlyExitTransformer {
 public:
  /// @throws std::domain_error if an option is out of range
  /// @throws std::invalid_argument if options.exits was trained for another shape
  explicit EarlyExitTransformer(std::shared_ptr<const TransformerWeights> weights, EarlyExitOptions options = {});
  EarlyExitTransformer(EarlyExitTransformer&&) noexcept;
  EarlyExitTransformer& operator=(EarlyExitTransformer&&) noexcept;
  ~EarlyExitTransformer();

  /// Tokens at positions before this one run all blocks, as for a prompt that is read at once; initially 0. Empties the
  /// prefix.
  /// @throws std::domain_error if position is outside [0, max_length()]
  void run_all_blocks_before(std::int64_t position);

  const TransformerConfig& config() const;
  std::int64_t vocab_size() const;
  std::int64_t max_length() const;
  std::int64_t length() const;

  /// The number of blocks that the token at a position of the prefix ran, in [1, config().layers].
  /// @throws std::domain_error if position is outside [0, length() - 1]
  std::int64_t blocks_run(std::int64_t position) const;
  /// Operations of a token that left after this many blocks, counted as in Transformer::operations_per_token: the
  /// blocks, keys and values of those skipped, and the exit and the head as often as they were evaluated, which is at
  /// every exit for softmax_response and once for state_saturation.
  /// @throws std::domain_error if blocks is outside [1, config().layers]
  double operations(std::int64_t blocks) const;
  /// Mean of operations over the tokens of the prefix that could leave; that of all blocks while there are none. A
  /// decoder that reads it at its end thus counts the work done.
  double operations_per_token() const;

  /// As Transformer::score, with its errors.
  void score(std::span<const Token> block, std::span<double> rows);
  /// Keeps the first `length` tokens. @throws std::domain_error if length is outside [0, length()]
  void roll_back(std::int64_t length);

 private:
  class Forward;
  std::unique_ptr<Forward> forward_;
};

static_assert(LanguageModel<EarlyExitTransformer>);

/// The effects of early exits on one text. Sums over its tokens.
struct EarlyExitText {
  /// [i]: tokens whose distribution is that after i + 1 blocks. Shape: (layers).
  std::vector<std::int64_t> blocks_run;
  /// Sum of the total variation between the two models' distributions at the text's prefixes.
  double total_variation = 0;
  /// Sum of KL(early || full), in nats: in expectation over texts of the model with early exits it is the divergence of
  /// their law from the full model's. Infinite if the full model excludes a token that the other one does not.
  double kullback_leibler = 0;
  double operations = 0;
};

/// Scores a text again with the model that generated it and with the full one.
///
/// The prompt except its last token runs all blocks; that token's row is the first of the text's.
/// @param full    the same weights, all blocks
/// @param prompt  at least one token
/// @param text    the tokens after it
/// @param standardisation  applied to both models' rows
/// @throws std::invalid_argument if the vocabularies differ in size
/// @throws std::domain_error if the prompt is empty; anything that the models throw
EarlyExitText measure_early_exit(EarlyExitTransformer& early, LanguageModelRef full, std::span<const Token> prompt,
                                 std::span<const Token> text, const core::Standardisation& standardisation);

}  // namespace specdec::sim
