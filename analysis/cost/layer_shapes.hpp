#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/cost/model_spec.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed. Layers from the sizes that configurations give: what is
// counted where, docs/reference/formats.md#architectures.

/// a b ...; @throws std::overflow_error from 2^53 on, as all of these do
std::int64_t product(std::initializer_list<std::int64_t> factors);
/// Throws std::overflow_error where the model has 2^53 or more of parameters, cached values and operations together, so
/// that no sum over it overflows.
void require_countable(const ModelSpec& model);

/// A matrix that every token is multiplied by.
void add_matrix(LayerGroup& layer, std::string_view name, std::int64_t parameters);

/// Attention with keys and values of their own: q, k, v from `input` values each, o back to the width, and the norm
/// before it. Norms, biases and sinks count as other parameters.
struct AttentionShape {
  std::int64_t width = 0, heads = 0, key_value_heads = 0, head_size = 0;
  /// The width, unless something is concatenated to it.
  std::int64_t input = 0;
  bool query_key_value_bias = false, output_bias = false;
  /// Size of a value, where it is not that of queries and keys.
  std::int64_t value_size = 0;
  /// Values are what keys are before their norm, so that there is no matrix for them; both are cached.
  bool values_are_keys = false;
  /// Norms of queries and keys, one weight per value of a head.
  bool head_norms = false;
  /// A second output of the query projection gates what attention gives.
  bool gated = false;
  /// One more logit per head.
  bool sinks = false;
};
LayerGroup attention_layer(const AttentionShape& shape);

/// Multi-head latent attention (DeepSeek): keys and values of all heads from a latent of key_value_rank values and a
/// rotary key that the heads share; these are cached. FLOP per pair in the absorbed form, in which decoding engines
/// attend to the latents themselves: heads (2 (key_value_rank + rotary) + 2 key_value_rank).
struct LatentAttentionShape {
  std::int64_t width = 0, heads = 0;
  /// Empty if queries come from one matrix.
  std::optional<std::int64_t> query_rank = {};
  std::int64_t key_value_rank = 0, rotary = 0, content = 0, value = 0;
  bool bias = false;
};
LayerGroup latent_attention_layer(const LatentAttentionShape& shape);

/// The indexer of the positions that attention attends to: queries of `heads` against one key per position, which is
/// cached.
struct IndexerShape {
  std::int64_t heads = 0, size = 0;
  /// Positions that a token attends to.
  std::int64_t selected = 0;
};
/// @param query_width  of what the queries come from: the latent of latent attention's queries, else the width
void add_indexer(LayerGroup& layer, std::int64_t width, std::int64_t query_width, const IndexerShape& indexer);

/// Attention of DeepSeek-V4: queries from a latent, outputs through one of output_rank for each group of heads, and one
/// vector for keys and values of all heads. A layer sees its window of those, which counts as a state of the sequence
/// that each pass reads and writes; and all before it as one vector for `ratio` positions. Of ratio 0 it sees the
/// window alone.
struct CompressedAttentionShape {
  std::int64_t width = 0, heads = 0, head_size = 0;
  std::int64_t query_rank = 0, output_rank = 0, output_groups = 0;
  std::int64_t window = 0, ratio = 0;
};
LayerGroup compressed_attention_layer(const CompressedAttentionShape& shape);

/// Gated delta net (Qwen3-Next): per value head a state of key_size x value_size, and the last inputs of a convolution.
/// FLOP per token: 7 per value of the states (decay 1, what the key reads 2, correction 2, what the query reads 2), 2
/// per weight of the convolution.
struct DeltaNetShape {
  std::int64_t width = 0, key_heads = 0, value_heads = 0, key_size = 0, value_size = 0, kernel = 0;
};
LayerGroup delta_net_layer(const DeltaNetShape& shape);

/// A selective state space as its whole layer. FLOP per token: 5 per value of the state (decay 1, input 2, output 2), 2
/// per weight of the convolution.
struct StateSpaceShape {
  std::int64_t width = 0, inner = 0, state_size = 0, kernel = 0;
  bool bias = false, convolution_bias = false;
};
/// Mamba: a state of inner x state_size, step sizes through time_step_rank values.
LayerGroup mamba_layer(const StateSpaceShape& shape, std::int64_t time_step_rank);
/// Mamba-2: the same state by heads, inputs and outputs of it shared by groups.
LayerGroup mamba2_layer(const StateSpaceShape& shape, std::int64_t heads, std::int64_t groups);

/// Three matrices where the activation is gated, else two; and the norm before them.
struct FeedForwardShape {
  std::int64_t width = 0, hidden = 0;
  bool gated = true, bias = false;
};
void add_feed_forward(LayerGroup& layer, const FeedForwardShape& shape);

/// Experts behind a router, and the norm before them.
struct ExpertShape {
  std::int64_t width = 0, experts = 0, per_token = 0, hidden = 0;
  /// Three matrices where activations are gated, else two.
  bool gated = true;
  /// Width of what routed experts read and give, between two projections of all tokens; 0: the layer's width.
  std::int64_t latent = 0;
  /// Hidden size of all shared experts together.
  std::int64_t shared_hidden = 0;
  /// A scalar that gates the shared expert.
  bool shared_gate = false;
  bool router_bias = false, expert_biases = false;
  std::string_view matrix = "mlp.experts.0.gate_proj";
};
void add_experts(LayerGroup& layer, const ExpertShape& shape);

/// Counts the layer to the group of those that are like it, else to a new one.
void add_layer(std::vector<LayerGroup>& groups, const LayerGroup& layer);

}  // namespace specdec::cost
