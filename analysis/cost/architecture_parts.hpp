#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/layer_shapes.hpp"
#include "traces/formats/config_fields.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.
//
// The architectures as the transformers library builds them (src/transformers/models/*/modeling_*.py); defaults are
// those of its configuration classes, and only for keys that published files leave out.

std::int64_t quotient(const traces::ConfigFields& fields, std::string_view name, std::int64_t dividend,
                      std::string_view by, std::int64_t divisor);
std::int64_t layer_count(const traces::ConfigFields& fields, std::string_view name);

struct ModelDefaults {
  bool tied = false;
  std::optional<std::int64_t> vocabulary = {};
};

/// Everything but the layers: embedding, head and the norm before it.
ModelSpec read_model(const traces::ConfigFields& fields, const ModelDefaults& otherwise = {});

template <class LayerOf>
void add_layers(ModelSpec& model, std::int64_t count, LayerOf layer_of) {
  for (std::int64_t index = 0; index < count; ++index) add_layer(model.layers, layer_of(index));
}

/// Further layers with two norms before a projection of 2 widths to one, and a norm before the shared head.
void add_next_token_modules(ModelSpec& model, LayerGroup layer, std::int64_t modules);

struct AttentionDefaults {
  std::optional<std::int64_t> heads = {}, key_value_heads = {}, head_size = {};
};

/// Without a default a model has as many key/value heads as heads, and the heads divide its width.
AttentionShape read_attention(const traces::ConfigFields& fields, const AttentionDefaults& otherwise = {});
/// attention_bias as most types have it: of all four projections.
AttentionShape with_biases(const traces::ConfigFields& fields, AttentionShape shape, bool otherwise = false);
/// Experts of the width hidden_size, with keys for their number and their hidden size, which most types name alike.
ExpertShape read_experts(const traces::ConfigFields& fields, std::string_view number, std::string_view hidden,
                         std::string_view per_token = "num_experts_per_tok");
/// States of Mamba layers of so many inner channels.
StateSpaceShape read_state_space(const traces::ConfigFields& fields, std::int64_t inner, std::string_view state_size);
/// Refuses more experts per token than there are.
void add_experts(const traces::ConfigFields& fields, LayerGroup& layer, const ExpertShape& experts);

void require_one_per_layer(const traces::ConfigFields& fields, std::string_view name, std::size_t entries,
                           std::int64_t count);

/// The type of each layer, from layer_types or else from the pattern of the model's type.
template <class Pattern>
std::vector<std::string> layer_types(const traces::ConfigFields& fields, std::int64_t count, Pattern pattern) {
  std::vector<std::string> types = fields.words("layer_types");
  if (types.empty()) {
    for (std::int64_t index = 0; index < count; ++index) types.emplace_back(pattern(index));
  }
  require_one_per_layer(fields, "layer_types", types.size(), count);
  return types;
}

inline const char* sliding_unless(bool full) { return full ? "full_attention" : "sliding_attention"; }

/// The window of each layer, empty if the layer sees all.
template <class Pattern>
std::vector<std::optional<std::int64_t>> layer_windows(const traces::ConfigFields& fields, std::int64_t count,
                                                       std::optional<std::int64_t> window_otherwise, Pattern pattern) {
  std::vector<std::optional<std::int64_t>> windows;
  for (const std::string& type : layer_types(fields, count, pattern)) {
    if (type == "sliding_attention") {
      windows.emplace_back(fields.size("sliding_window", window_otherwise));
    } else if (type == "full_attention") {
      windows.emplace_back();
    } else {
      fields.refuse("layer_types", '"' + type + '"', "\"full_attention\" or \"sliding_attention\"");
    }
  }
  return windows;
}

LayerGroup windowed(LayerGroup layer, std::optional<std::int64_t> window);
std::vector<std::optional<std::int64_t>> one_window(const traces::ConfigFields& fields);

/// Those with experts and with gated delta nets.
using ReadModel = ModelSpec(const traces::ConfigFields& fields);
ReadModel read_deepseek_v2, read_deepseek_v3, read_deepseek_v4, read_dense_delta_nets, read_gemma4_text, read_glm4_moe,
    read_gpt_oss, read_kimi_linear, read_llama4_text, read_mimo_v2, read_minimax_m2, read_minimax_m3, read_mixtral,
    read_qwen2_moe, read_qwen3_moe, read_sparse_deepseek, read_sparse_delta_nets, read_step3p7;

}  // namespace specdec::cost
