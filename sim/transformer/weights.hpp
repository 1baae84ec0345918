#pragma once

#include <vector>

#include "sim/transformer/aligned.hpp"
#include "sim/transformer/config.hpp"
#include "sim/transformer/packed_matrix.hpp"

namespace specdec::sim {

/// A matrix and its bias, which is empty where the model has none.
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
  /// Rows: for Llama gate, then up; for GPT-2 the one projection.
  Linear feed_forward_input;
  Linear feed_forward_output;
};

struct TransformerWeights {
  TransformerConfig config;
  /// What all matrices point into.
  AlignedFloats matrix_memory;
  /// Shape: (vocab_size, width).
  std::vector<float> token_embedding;
  /// Shape: (max_length, width); GPT-2 only.
  std::vector<float> position_embedding;
  std::vector<TransformerBlock> blocks;
  Norm final_norm;
  Linear head;
};

}  // namespace specdec::sim
