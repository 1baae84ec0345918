#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/language_model.hpp"
#include "sim/transformer/aligned.hpp"
#include "sim/transformer/config.hpp"
#include "sim/transformer/packed_matrix.hpp"

namespace specdec::sim {

/// A matrix and its bias, which is empty if the model has none.
struct Linear {
  PackedMatrix matrix;
  AlignedFloats bias;
};

/// RMSNorm's weight (no bias), or LayerNorm's weight and bias; the weight is followed by 0 up to a multiple of 16.
struct Norm {
  AlignedFloats weight;
  AlignedFloats bias;
};

struct TransformerBlock {
  Norm attention_norm;
  /// Rows: queries of all heads, keys, values.
  Linear query_key_value;
  Linear attention_output;
  Norm feed_forward_norm;
  /// Rows: for Llama gate, then up; for GPT-2 the only projection.
  Linear feed_forward_input;
  Linear feed_forward_output;
};

struct TransformerWeights {
  TransformerConfig config;
  /// The memory that all matrices point into.
  AlignedBytes matrix_memory;
  /// The token of each row of the head, in increasing order; empty if the head has a row for every token.
  std::vector<Token> known_tokens;
  /// Shape: (vocab_size, width).
  std::vector<float> token_embedding;
  /// Shape: (max_length, width); GPT-2 only.
  std::vector<float> position_embedding;
  std::vector<TransformerBlock> blocks;
  Norm final_norm;
  Linear head;
};

/// An exit after a block: a projection that is added to the state before the final norm.
struct ExitHead {
  Norm norm;
  Linear projection;
};

struct ExitWeights {
  std::int64_t width = 0;
  /// The memory that all matrices point into.
  AlignedBytes matrix_memory;
  /// By the number of blocks before them.
  std::map<std::int64_t, ExitHead> heads;
};

/// The exit after this many blocks; null for a plain one, which is used without exits and after all blocks. It keeps
/// `exits` alive.
/// @throws std::domain_error if there is none at that depth
/// @throws std::invalid_argument if the exits were trained for another width
std::shared_ptr<const ExitHead> exit_behind(std::int64_t blocks, const TransformerConfig& config,
                                            const std::shared_ptr<const ExitWeights>& exits);

}  // namespace specdec::sim
