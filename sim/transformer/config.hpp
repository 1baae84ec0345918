#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace specdec::sim {

/// Rotary frequencies stretched as Llama 3.1 does; the names are those of config.json.
struct Llama3RopeScaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max_position_embeddings = 8192;
};

/// The shape of a decoder-only transformer, from a Hugging Face config.json.
struct TransformerConfig {
  /// llama: RMSNorm, rotary positions (split-half), SwiGLU. gpt2: LayerNorm, learned positions, tanh GELU.
  enum class Family { llama, gpt2 };

  Family family = Family::llama;
  std::int64_t vocab_size = 0;
  /// Tokens that the model can write; the others have probability 0, and are read as the first (draft_vocab_size).
  std::int64_t known_tokens = 0;
  /// Width of the residual stream (hidden_size, n_embd).
  std::int64_t width = 0;
  /// Width of the feed-forward layer (intermediate_size, n_inner).
  std::int64_t feed_forward = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  /// Heads of keys and values; divides `heads`.
  std::int64_t key_value_heads = 0;
  std::int64_t head_size = 0;
  /// Longest prefix (max_position_embeddings, n_positions).
  std::int64_t max_length = 0;
  double norm_epsilon = 0;
  double rope_theta = 10000;
  std::optional<Llama3RopeScaling> rope_scaling;
  /// True if the output head is the token embedding.
  bool tied_head = false;
  bool attention_bias = false;
  bool feed_forward_bias = false;
};

/// Reads config.json of the Llama family (`"model_type": "llama"`) or of GPT-2 (`"gpt2"`).
///
/// Rotary positions: `rope_theta` with `rope_scaling`, or `rope_parameters`; types "default" and "llama3".
/// @throws FileError naming the field if a size is missing, not a positive integer or not divisible as required, or
///   if the file requires something that the forward pass does not do (another model_type, activation, rope type,
///   quantised weights): no such setting is ignored
TransformerConfig read_config(const std::filesystem::path& path);

}  // namespace specdec::sim
