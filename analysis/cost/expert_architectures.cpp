#include <algorithm>
#include <utility>

#include "analysis/cost/architecture_parts.hpp"

namespace specdec::cost {
namespace {

using traces::ConfigFields;

std::vector<std::int64_t> one_per_layer(const ConfigFields& fields, std::string_view name, std::int64_t count) {
  std::vector<std::int64_t> found = fields.counts(name);
  require_one_per_layer(fields, name, found.size(), count);
  return found;
}

/// Experts in every decoder_sparse_step-th layer but those of mlp_only_layers, as all of Qwen's types have it.
class QwenFeedForwards {
 public:
  QwenFeedForwards(const ConfigFields& fields, std::int64_t shared_hidden)
      : fields_(fields), step_(fields.size("decoder_sparse_step", 1)), dense_layers_(fields.counts("mlp_only_layers")) {
    experts_ = read_experts(fields, fields.has("num_local_experts") ? "num_local_experts" : "num_experts",
                            "moe_intermediate_size");
    experts_.shared_hidden = shared_hidden;
    experts_.shared_gate = shared_hidden > 0;
    const bool all_sparse = step_ == 1 && dense_layers_.empty();
    if (!all_sparse) dense_ = {.width = experts_.width, .hidden = fields.size("intermediate_size")};
  }

  void add(LayerGroup& layer, std::int64_t index) const {
    const bool dense = std::find(dense_layers_.begin(), dense_layers_.end(), index) != dense_layers_.end();
    if (dense || (index + 1) % step_ != 0) {
      add_feed_forward(layer, dense_);
    } else {
      add_experts(fields_, layer, experts_);
    }
  }

 private:
  const ConfigFields& fields_;
  std::int64_t step_;
  std::vector<std::int64_t> dense_layers_;
  ExpertShape experts_;
  FeedForwardShape dense_;
};

/// Gated delta nets, and gated attention in every few layers.
/// @param add_feed_forward_to  a layer, by its index
template <class AddFeedForward>
ModelSpec delta_net_decoder(const ConfigFields& fields, const AddFeedForward& add_feed_forward_to) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = with_biases(fields, read_attention(fields, {.head_size = 256}));
  attention.head_norms = attention.gated = true;
  const LayerGroup linear = delta_net_layer({.width = model.width,
                                             .key_heads = fields.size("linear_num_key_heads"),
                                             .value_heads = fields.size("linear_num_value_heads"),
                                             .key_size = fields.size("linear_key_head_dim"),
                                             .value_size = fields.size("linear_value_head_dim"),
                                             .kernel = fields.size("linear_conv_kernel_dim")});
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const std::int64_t interval = fields.size("full_attention_interval", 4);
  const std::vector<std::string> types = layer_types(fields, layers, [&](std::int64_t index) {
    return (index + 1) % interval == 0 ? "full_attention" : "linear_attention";
  });
  add_layers(model, layers, [&](std::int64_t index) {
    const std::string& type = types[static_cast<std::size_t>(index)];
    if (type != "linear_attention" && type != "full_attention") {
      fields.refuse("layer_types", '"' + type + '"', "\"full_attention\" or \"linear_attention\"");
    }
    LayerGroup layer = type == "full_attention" ? attention_layer(attention) : linear;
    add_feed_forward_to(layer, index);
    return layer;
  });
  LayerGroup module = attention_layer(attention);
  add_feed_forward_to(module, layers - 1);
  add_next_token_modules(model, std::move(module), fields.count("mtp_num_hidden_layers", 0));
  return model;
}

/// Experts under the names that DeepSeek gave them.
ExpertShape routed_experts(const ConfigFields& fields, bool router_bias = true) {
  ExpertShape experts = read_experts(fields, "n_routed_experts", "moe_intermediate_size");
  experts.shared_hidden = product({fields.count("n_shared_experts", 0), experts.hidden});
  experts.router_bias = router_bias;
  return experts;
}

/// Layers with a feed-forward of the hidden size where `is_dense` says so, else with experts.
/// @param attention_of  a layer without them, by its index
template <class AttentionOf, class IsDense>
void add_dense_or_experts(const ConfigFields& fields, std::string_view hidden, const ExpertShape& experts,
                          const AttentionOf& attention_of, const IsDense& is_dense, ModelSpec& model) {
  add_layers(model, layer_count(fields, "num_hidden_layers"), [&](std::int64_t index) {
    LayerGroup layer = attention_of(index);
    if (is_dense(index)) {
      add_feed_forward(layer, {.width = model.width, .hidden = fields.size(hidden)});
    } else {
      add_experts(fields, layer, experts);
    }
    return layer;
  });
}

/// Dense layers first, then experts and shared experts; the next-token modules are further layers of the last kind.
/// @param attention_of  a layer without its feed-forward, by its index; the next-token modules' is behind the last one
template <class AttentionOf>
void add_dense_then_experts(const ConfigFields& fields, const AttentionOf& attention_of, const ExpertShape& experts,
                            ModelSpec& model) {
  const std::int64_t dense_layers = fields.count("first_k_dense_replace", 0);
  add_dense_or_experts(
      fields, "intermediate_size", experts, attention_of, [&](std::int64_t index) { return index < dense_layers; },
      model);
  LayerGroup module = attention_of(layer_count(fields, "num_hidden_layers"));
  add_experts(fields, module, experts);
  add_next_token_modules(model, std::move(module), fields.count("num_nextn_predict_layers", 0));
}

LatentAttentionShape read_latent_attention(const ConfigFields& fields) {
  if (!fields.names("q_lora_rank")) fields.refuse("q_lora_rank", "missing", "present, null for none");
  if (fields.size("moe_layer_freq", 1) != 1) fields.refuse("moe_layer_freq", "another number", "1");
  return {.width = fields.size("hidden_size"),
          .heads = fields.size("num_attention_heads"),
          .query_rank = fields.find_size("q_lora_rank"),
          .key_value_rank = fields.size("kv_lora_rank"),
          .rotary = fields.size("qk_rope_head_dim"),
          .content = fields.size("qk_nope_head_dim"),
          .value = fields.size("v_head_dim"),
          .bias = fields.flag("attention_bias", false)};
}

ModelSpec read_deepseek(const ConfigFields& fields, bool router_bias) {
  ModelSpec model = read_model(fields);
  const LayerGroup attention = latent_attention_layer(read_latent_attention(fields));
  add_dense_then_experts(
      fields, [&](std::int64_t) { return attention; }, routed_experts(fields, router_bias), model);
  return model;
}

}  // namespace

ModelSpec read_qwen2_moe(const ConfigFields& fields) {
  // Releases disagree about which layers have windows.
  fields.require_flag("use_sliding_window", false);
  ModelSpec model = read_model(fields);
  const QwenFeedForwards feed_forwards(fields, fields.size("shared_expert_intermediate_size"));
  AttentionShape attention = read_attention(fields);
  attention.query_key_value_bias = fields.flag("qkv_bias", true);
  add_layers(model, layer_count(fields, "num_hidden_layers"), [&](std::int64_t index) {
    LayerGroup layer = attention_layer(attention);
    feed_forwards.add(layer, index);
    return layer;
  });
  return model;
}

ModelSpec read_qwen3_moe(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const QwenFeedForwards feed_forwards(fields, 0);
  AttentionShape attention = with_biases(fields, read_attention(fields));
  attention.head_norms = true;
  const auto window =
      fields.flag("use_sliding_window", false) ? std::optional(fields.size("sliding_window", 4096)) : std::nullopt;
  add_layers(model, layer_count(fields, "num_hidden_layers"), [&](std::int64_t index) {
    LayerGroup layer = windowed(attention_layer(attention), window);
    feed_forwards.add(layer, index);
    return layer;
  });
  return model;
}

/// Qwen3-Next and Qwen3.5 with experts.
ModelSpec read_sparse_delta_nets(const ConfigFields& fields) {
  const QwenFeedForwards feed_forwards(fields, fields.size("shared_expert_intermediate_size"));
  return delta_net_decoder(fields, [&](LayerGroup& layer, std::int64_t index) { feed_forwards.add(layer, index); });
}

ModelSpec read_dense_delta_nets(const ConfigFields& fields) {
  const FeedForwardShape shape = {.width = fields.size("hidden_size"), .hidden = fields.size("intermediate_size")};
  return delta_net_decoder(fields, [&](LayerGroup& layer, std::int64_t) { add_feed_forward(layer, shape); });
}

ModelSpec read_mixtral(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  LayerGroup layer = attention_layer(read_attention(fields));
  add_experts(fields, layer, read_experts(fields, "num_local_experts", "intermediate_size"));
  for (const auto& window : one_window(fields)) add_layer(model.layers, windowed(layer, window));
  return model;
}

ModelSpec read_gpt_oss(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = with_biases(fields, read_attention(fields, {.head_size = 64}), true);
  attention.sinks = true;
  LayerGroup layer = attention_layer(attention);
  ExpertShape experts = read_experts(fields, "num_local_experts", "intermediate_size");
  experts.router_bias = experts.expert_biases = true;
  add_experts(fields, layer, experts);
  const auto alternating = [](std::int64_t index) { return sliding_unless(index % 2 == 1); };
  for (const auto& window :
       layer_windows(fields, layer_count(fields, "num_hidden_layers"), std::nullopt, alternating)) {
    add_layer(model.layers, windowed(layer, window));
  }
  return model;
}

/// Gemma 4: full attention has heads of its own size, whose values are the keys where attention_k_eq_v says so; experts
/// stand beside the dense feed-forward, with norms and scales of their own.
ModelSpec read_gemma4_text(const ConfigFields& fields) {
  for (const char* const absent : {"hidden_size_per_layer_input", "num_kv_shared_layers"})
    if (fields.count(absent, 0) != 0) fields.refuse(absent, "above 0", "0");
  ModelSpec model = read_model(fields, {.tied = true});
  AttentionShape sliding = with_biases(fields, read_attention(fields));
  sliding.head_norms = true;
  AttentionShape full = sliding;
  full.head_size = fields.size("global_head_dim", sliding.head_size);
  full.key_value_heads = fields.size("num_global_key_value_heads", sliding.key_value_heads);
  full.values_are_keys = fields.flag("attention_k_eq_v", false);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const auto windows =
      layer_windows(fields, layers, std::nullopt, [](std::int64_t index) { return sliding_unless(index % 6 == 5); });
  add_layers(model, layers, [&](std::int64_t index) {
    const std::optional<std::int64_t>& window = windows[static_cast<std::size_t>(index)];
    LayerGroup layer = windowed(attention_layer(window ? sliding : full), window);
    add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size")});
    layer.other_parameters += 2 * model.width + 1;  // norms behind, a scale of the layer
    if (fields.flag("enable_moe_block", false)) {
      ExpertShape experts = read_experts(fields, "num_experts", "moe_intermediate_size", "top_k_experts");
      experts.matrix = "experts.0.gate_proj";
      add_experts(fields, layer, experts);
      layer.other_parameters += 3 * model.width + experts.experts;  // two norms more, scales of router and experts
    }
    return layer;
  });
  return model;
}

/// Llama 4: in all layers but every fourth a token sees its chunk of the context alone, which counts as a window.
ModelSpec read_llama4_text(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const AttentionShape attention = with_biases(fields, read_attention(fields));
  ExpertShape experts = read_experts(fields, "num_local_experts", "intermediate_size");
  experts.shared_hidden = experts.hidden;
  const std::int64_t step = fields.size("interleave_moe_layer_step", 1);
  const std::optional<std::int64_t> chunk = fields.find_size("attention_chunk_size");
  const auto attention_of = [&](std::int64_t index) {
    return windowed(attention_layer(attention), (index + 1) % 4 == 0 ? std::nullopt : chunk);
  };
  const auto is_dense = [&](std::int64_t index) { return (index + 1) % step != 0; };
  add_dense_or_experts(fields, "intermediate_size_mlp", experts, attention_of, is_dense, model);
  return model;
}

ExpertShape minimax_experts(const ConfigFields& fields) {
  ExpertShape experts = read_experts(fields, "num_local_experts", "intermediate_size");
  experts.shared_hidden = fields.count("shared_intermediate_size", 0);
  experts.router_bias = fields.flag("use_routing_bias", false);
  return experts;
}

/// MiniMax-M2: one norm over all heads of queries, one over all of keys. Its next-token modules are not published.
ModelSpec read_minimax_m2(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const AttentionShape attention = read_attention(fields);
  LayerGroup layer = attention_layer(attention);
  if (fields.flag("use_qk_norm", false)) {
    fields.require_word("qk_norm_type", "per_layer", "per_layer");
    layer.other_parameters += product({attention.heads + attention.key_value_heads, attention.head_size});
  }
  add_experts(fields, layer, minimax_experts(fields));
  layer.count = layer_count(fields, "num_hidden_layers");
  model.layers = {layer};
  return model;
}

/// MiniMax-M3: blocks of positions are chosen where sparse_attention_freq says 1, by heads whose scores have no
/// weights, which are counted all the same; experts where moe_layer_freq says 1. Its next-token modules are not
/// published.
ModelSpec read_minimax_m3(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = read_attention(fields);
  attention.head_norms = fields.flag("use_qk_norm", false);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const ConfigFields sparse = fields.object("sparse_attention_config");
  const std::vector<std::int64_t> chooses = one_per_layer(sparse, "sparse_attention_freq", layers);
  const std::vector<std::int64_t> has_experts = one_per_layer(fields, "moe_layer_freq", layers);
  const std::int64_t selected = product({sparse.size("sparse_topk_blocks"), sparse.size("sparse_block_size")});
  const auto attention_of = [&](std::int64_t index) {
    LayerGroup layer = attention_layer(attention);
    if (chooses[static_cast<std::size_t>(index)] != 0)
      add_indexer(layer, model.width, model.width,
                  {sparse.size("sparse_num_index_heads"), sparse.size("sparse_index_dim"), selected});
    return layer;
  };
  const auto is_dense = [&](std::int64_t index) { return has_experts[static_cast<std::size_t>(index)] == 0; };
  add_dense_or_experts(fields, "dense_intermediate_size", minimax_experts(fields), attention_of, is_dense, model);
  return model;
}

/// Kimi-K3: delta attention, whose keys' channels decay each by itself, and latent attention with a gate in
/// full_attn_layers, which count from 1.
ModelSpec read_kimi_linear(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const LatentAttentionShape shape = read_latent_attention(fields);
  LayerGroup full = latent_attention_layer(shape);
  if (fields.flag("mla_use_output_gate", false))
    add_matrix(full, "self_attn.g_proj", product({shape.width, shape.heads, shape.value}));
  const ConfigFields linear = fields.object("linear_attn_config");
  if (!linear.flag("use_full_rank_gate", false)) linear.refuse("use_full_rank_gate", "false", "true");
  const std::int64_t heads = linear.size("num_heads"), size = linear.size("head_dim");
  LayerGroup delta = delta_net_layer({model.width, heads, heads, size, size, linear.size("short_conv_kernel_size")});
  add_matrix(delta, "", product({size, model.width + heads * size}));
  // Its checkpoints have these matrices where others have attention.
  for (LayerMatrix& matrix : delta.matrices) matrix.name = "self_attn.o_proj";
  const std::vector<std::int64_t> full_layers = linear.counts("full_attn_layers");
  const auto attention_of = [&](std::int64_t index) {
    return std::find(full_layers.begin(), full_layers.end(), index + 1) != full_layers.end() ? full : delta;
  };
  ExpertShape experts = read_experts(fields, "num_experts", "moe_intermediate_size", "num_experts_per_token");
  experts.latent = fields.count("routed_expert_hidden_size", 0);
  experts.shared_hidden = product({fields.count("num_shared_experts", 0), experts.hidden});
  experts.router_bias = true;
  add_dense_then_experts(fields, attention_of, experts, model);
  return model;
}

/// DeepSeek-V4: compress_ratios of 0, 4 or 128, of which those of 4 choose among the vectors; experts in all layers.
/// What its residual streams are mixed by (hyper-connections) is not counted: 0.01% of it.
ModelSpec read_deepseek_v4(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  constexpr std::int64_t chosen = 4, longest = 128;
  CompressedAttentionShape shape = {.width = model.width,
                                    .heads = fields.size("num_attention_heads"),
                                    .head_size = fields.size("head_dim"),
                                    .query_rank = fields.size("q_lora_rank"),
                                    .output_rank = fields.size("o_lora_rank"),
                                    .output_groups = fields.size("o_groups"),
                                    .window = fields.size("sliding_window")};
  quotient(fields, "head_dim", shape.head_size, "the longest of compress_ratios", longest);
  const std::int64_t with_modules =
      layer_count(fields, "num_hidden_layers") + fields.count("num_nextn_predict_layers", 0);
  const std::vector<std::int64_t> ratios = one_per_layer(fields, "compress_ratios", with_modules);
  const auto attention_of = [&](std::int64_t index) {
    shape.ratio = ratios[static_cast<std::size_t>(index)];
    if (shape.ratio != 0 && shape.ratio != chosen && shape.ratio != longest)
      fields.refuse("compress_ratios", "another number", "0, 4 or 128");
    LayerGroup layer = compressed_attention_layer(shape);
    if (shape.ratio == chosen) {
      // One key for so many positions, from the values of twice as many.
      const IndexerShape indexer = {fields.size("index_n_heads"), fields.size("index_head_dim"),
                                    product({chosen, fields.size("index_topk")})};
      add_indexer(layer, model.width, shape.query_rank, indexer);
      add_matrix(layer, "self_attn.indexer.compressor", product({3, model.width, indexer.size}));
      layer.index_values_per_token /= chosen;
      layer.index_flops_per_pair /= chosen;
    }
    return layer;
  };
  add_dense_then_experts(fields, attention_of, routed_experts(fields), model);
  return model;
}

/// Step 3.7: windows by layer_types, dense layers first, then experts beside a shared one. Its next-token modules are
/// not published.
ModelSpec read_step3p7(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = read_attention(fields);
  attention.head_norms = true;
  ExpertShape experts = read_experts(fields, "num_experts", "moe_intermediate_size");
  experts.shared_hidden = fields.size("share_expert_dim");
  experts.router_bias = fields.flag("use_moe_router_bias", false);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const std::int64_t dense_layers = fields.count("first_k_dense_replace", 0);
  const auto windows = layer_windows(fields, layers, std::nullopt, [](std::int64_t) { return sliding_unless(true); });
  const auto attention_of = [&](std::int64_t index) {
    return windowed(attention_layer(attention), windows[static_cast<std::size_t>(index)]);
  };
  const auto is_dense = [&](std::int64_t index) { return index < dense_layers; };
  add_dense_or_experts(fields, "intermediate_size", experts, attention_of, is_dense, model);
  return model;
}

/// MiMo-V2: windows where hybrid_layer_pattern says 1, with key/value heads of their own and a sink per head; experts
/// where moe_layer_freq says 1. Its next-token modules are not published.
ModelSpec read_mimo_v2(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape full = read_attention(fields);
  full.value_size = fields.size("v_head_dim", full.head_size);
  full.sinks = fields.flag("add_full_attention_sink_bias", false);
  const AttentionShape sliding = {.width = model.width,
                                  .heads = fields.size("swa_num_attention_heads", full.heads),
                                  .key_value_heads = fields.size("swa_num_key_value_heads"),
                                  .head_size = fields.size("swa_head_dim", full.head_size),
                                  .value_size = fields.size("swa_v_head_dim", full.value_size),
                                  .sinks = fields.flag("add_swa_attention_sink_bias", false)};
  const ExpertShape experts = routed_experts(fields);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const std::vector<std::int64_t> windows = one_per_layer(fields, "hybrid_layer_pattern", layers);
  const std::vector<std::int64_t> sparse = one_per_layer(fields, "moe_layer_freq", layers);
  const auto attention_of = [&](std::int64_t index) {
    return windows[static_cast<std::size_t>(index)] == 0
               ? attention_layer(full)
               : windowed(attention_layer(sliding), fields.size("sliding_window"));
  };
  const auto is_dense = [&](std::int64_t index) { return sparse[static_cast<std::size_t>(index)] == 0; };
  add_dense_or_experts(fields, "intermediate_size", experts, attention_of, is_dense, model);
  return model;
}

/// DeepSeek's sparse attention. In layers whose indexer_types are "shared" the choice of a layer before holds.
ModelSpec read_sparse_deepseek(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const LatentAttentionShape shape = read_latent_attention(fields);
  LayerGroup chooses = latent_attention_layer(shape), shares = chooses;
  shares.selected = fields.size("index_topk");
  add_indexer(chooses, model.width, shape.query_rank.value_or(0),
              {fields.size("index_n_heads"), fields.size("index_head_dim"), *shares.selected});
  const std::vector<std::string> types = fields.words("indexer_types");
  add_dense_then_experts(
      fields,
      [&](std::int64_t index) {
        const auto at = static_cast<std::size_t>(index);
        return at < types.size() && types[at] == "shared" ? shares : chooses;
      },
      routed_experts(fields), model);
  return model;
}

ModelSpec read_deepseek_v2(const ConfigFields& fields) { return read_deepseek(fields, false); }
ModelSpec read_deepseek_v3(const ConfigFields& fields) { return read_deepseek(fields, true); }

ModelSpec read_glm4_moe(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = read_attention(fields);
  attention.query_key_value_bias = fields.flag("attention_bias", false);
  attention.head_norms = fields.flag("use_qk_norm", false);
  add_dense_then_experts(
      fields, [&](std::int64_t) { return attention_layer(attention); }, routed_experts(fields), model);
  return model;
}

}  // namespace specdec::cost
