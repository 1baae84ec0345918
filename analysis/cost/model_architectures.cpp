#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/cost/layer_shapes.hpp"
#include "analysis/cost/model_config.hpp"

// The architectures as the transformers library builds them (src/transformers/models/*/modeling_*.py); defaults are
// those of its configuration classes, and only for keys that published files leave out.

namespace specdec::cost {
namespace {

using traces::ConfigFields;

std::int64_t quotient(const ConfigFields& fields, std::string_view name, std::int64_t dividend, std::string_view by,
                      std::int64_t divisor) {
  if (dividend % divisor != 0) {
    fields.refuse(name, fmt::format("{}", dividend), fmt::format("a multiple of {}, {}", by, divisor));
  }
  return dividend / divisor;
}

std::int64_t layer_count(const ConfigFields& fields, std::string_view name) {
  constexpr std::int64_t most = 65536;
  const std::int64_t count = fields.size(name);
  if (count > most) fields.refuse(name, fmt::format("{}", count), fmt::format("an integer in [1, {}]", most));
  return count;
}

struct ModelDefaults {
  bool tied = false;
  std::optional<std::int64_t> vocabulary = {};
};

/// Everything but the layers: embedding, head and the norm before it.
ModelSpec read_model(const ConfigFields& fields, const ModelDefaults& otherwise = {}) {
  ModelSpec model;
  model.width = fields.size("hidden_size");
  model.vocabulary = fields.size("vocab_size", otherwise.vocabulary);
  model.max_context = fields.find_size("max_position_embeddings");
  model.embedding_parameters = model.head_parameters = product({model.vocabulary, model.width});
  model.tied_head = fields.flag("tie_word_embeddings", otherwise.tied);
  model.extra_other_parameters = model.width;
  return model;
}

template <class LayerOf>
void add_layers(ModelSpec& model, std::int64_t count, LayerOf layer_of) {
  for (std::int64_t index = 0; index < count; ++index) add_layer(model.layers, layer_of(index));
}

/// Further layers with two norms before a projection of 2 widths to one, and a norm before the shared head.
void add_next_token_modules(ModelSpec& model, LayerGroup layer, std::int64_t modules) {
  if (modules == 0) return;
  layer.other_parameters += 3 * model.width;
  layer.count = modules;
  model.next_token_layers = {std::move(layer)};
  model.next_token_extra_parameters = product({modules, 2, model.width, model.width});
}

struct AttentionDefaults {
  std::optional<std::int64_t> heads = {}, key_value_heads = {}, head_size = {};
};

/// Without a default a model has as many key/value heads as heads, and the heads divide its width.
AttentionShape read_attention(const ConfigFields& fields, const AttentionDefaults& otherwise = {}) {
  AttentionShape shape;
  shape.width = fields.size("hidden_size");
  shape.heads = fields.size("num_attention_heads", otherwise.heads);
  shape.key_value_heads = fields.size("num_key_value_heads", otherwise.key_value_heads.value_or(shape.heads));
  quotient(fields, "num_attention_heads", shape.heads, "num_key_value_heads", shape.key_value_heads);
  if (fields.has("head_dim") || otherwise.head_size) {
    shape.head_size = fields.size("head_dim", otherwise.head_size);
  } else {
    shape.head_size = quotient(fields, "hidden_size", shape.width, "num_attention_heads", shape.heads);
  }
  return shape;
}

/// attention_bias as most types have it: of all four projections.
AttentionShape with_biases(const ConfigFields& fields, AttentionShape shape, bool otherwise = false) {
  shape.query_key_value_bias = shape.output_bias = fields.flag("attention_bias", otherwise);
  return shape;
}

void require_one_per_layer(const ConfigFields& fields, std::string_view name, std::size_t entries, std::int64_t count) {
  if (std::cmp_equal(entries, count)) return;
  fields.refuse(name, fmt::format("{} entries", entries), fmt::format("one per layer, num_hidden_layers is {}", count));
}

std::vector<std::int64_t> one_per_layer(const ConfigFields& fields, std::string_view name, std::int64_t count) {
  std::vector<std::int64_t> found = fields.counts(name);
  require_one_per_layer(fields, name, found.size(), count);
  return found;
}

/// The type of each layer, from layer_types or else from the pattern of the model's type.
template <class Pattern>
std::vector<std::string> layer_types(const ConfigFields& fields, std::int64_t count, Pattern pattern) {
  std::vector<std::string> types = fields.words("layer_types");
  if (types.empty()) {
    for (std::int64_t index = 0; index < count; ++index) types.emplace_back(pattern(index));
  }
  require_one_per_layer(fields, "layer_types", types.size(), count);
  return types;
}

const char* sliding_unless(bool full) { return full ? "full_attention" : "sliding_attention"; }

/// The window of each layer, empty if the layer sees all.
template <class Pattern>
std::vector<std::optional<std::int64_t>> layer_windows(const ConfigFields& fields, std::int64_t count,
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

LayerGroup windowed(LayerGroup layer, std::optional<std::int64_t> window) {
  layer.window = window;
  return layer;
}

/// Attention and a gated feed-forward, alike in all layers but for their windows.
ModelSpec plain_decoder(const ConfigFields& fields, const AttentionShape& attention,
                        const std::vector<std::optional<std::int64_t>>& windows, bool feed_forward_bias = false) {
  ModelSpec model = read_model(fields);
  LayerGroup layer = attention_layer(attention);
  add_feed_forward(layer,
                   {.width = model.width, .hidden = fields.size("intermediate_size"), .bias = feed_forward_bias});
  for (const auto& window : windows) add_layer(model.layers, windowed(layer, window));
  return model;
}

std::vector<std::optional<std::int64_t>> one_window(const ConfigFields& fields) {
  const auto layers = static_cast<std::size_t>(layer_count(fields, "num_hidden_layers"));
  return std::vector<std::optional<std::int64_t>>(layers, fields.find_size("sliding_window"));
}

/// EAGLE-3: the layers of a Llama whose first one takes embedding and state together; a projection of three of the
/// target's states to one; a head over the draft's own vocabulary; the target's embedding where the widths agree.
/// The projection is read once per round and counts as if it were in each pass.
ModelSpec read_eagle3(const ConfigFields& fields, const ConfigFields& layer_fields) {
  ModelSpec model = read_model(layer_fields);
  const std::int64_t target_width = fields.size("target_hidden_size", model.width);
  const std::int64_t draft_vocabulary = fields.size("draft_vocab_size", model.vocabulary);
  model.head_parameters = product({draft_vocabulary, model.width});
  model.tied_head = false;
  model.shared_embedding = target_width == model.width;
  model.target_width = target_width;
  const bool projects = !fields.has("eagle_config") || fields.object("eagle_config").flag("use_aux_hidden_state", true);
  if (projects) {
    model.extra_dense_parameters = product({3, target_width, model.width});
    if (fields.flag("norm_before_fc", false) || fields.flag("fc_norm", false)) {
      model.extra_other_parameters += 3 * target_width;
    }
  }
  add_layers(model, layer_count(layer_fields, "num_hidden_layers"), [&](std::int64_t index) {
    AttentionShape attention = with_biases(layer_fields, read_attention(layer_fields));
    if (index == 0) attention.input = 2 * model.width;
    LayerGroup layer = attention_layer(attention);
    add_feed_forward(layer, {.width = model.width,
                             .hidden = layer_fields.size("intermediate_size"),
                             .bias = layer_fields.flag("mlp_bias", false)});
    layer.other_parameters += model.width;  // the norm of the state beside that of the embedding
    return layer;
  });
  return model;
}

/// Whether one of the classes that the file is for has this in its name.
bool is_for(const ConfigFields& fields, std::string_view part) {
  const std::vector<std::string> classes = fields.words("architectures");
  return std::any_of(classes.begin(), classes.end(),
                     [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

ModelSpec read_llama(const ConfigFields& fields) {
  if (fields.has("draft_vocab_size") || is_for(fields, "Eagle3")) return read_eagle3(fields, fields);
  const auto layers = static_cast<std::size_t>(layer_count(fields, "num_hidden_layers"));
  return plain_decoder(fields, with_biases(fields, read_attention(fields)),
                       std::vector<std::optional<std::int64_t>>(layers), fields.flag("mlp_bias", false));
}

/// The class gives a window of 4096 where the key is missing, and published files write null where there is none.
ModelSpec read_mistral(const ConfigFields& fields) {
  if (!fields.names("sliding_window")) fields.refuse("sliding_window", "missing", "present, null for none");
  fields.require_absent("layer_types");
  return plain_decoder(fields, read_attention(fields), one_window(fields));
}

ModelSpec read_phi3(const ConfigFields& fields) {
  return plain_decoder(fields, read_attention(fields), one_window(fields));
}

/// Windows in layers from max_window_layers on, where use_sliding_window is set.
std::vector<std::optional<std::int64_t>> qwen_windows(const ConfigFields& fields) {
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  if (!fields.flag("use_sliding_window", false)) return std::vector<std::optional<std::int64_t>>(layers);
  const std::int64_t first = fields.count("max_window_layers", 28);
  return layer_windows(fields, layers, 4096, [&](std::int64_t index) { return sliding_unless(index < first); });
}

ModelSpec read_qwen2(const ConfigFields& fields) {
  AttentionShape attention = read_attention(fields);
  attention.query_key_value_bias = true;
  return plain_decoder(fields, attention, qwen_windows(fields));
}

ModelSpec read_qwen3(const ConfigFields& fields) {
  AttentionShape attention = with_biases(fields, read_attention(fields, {.head_size = 128}));
  attention.head_norms = true;
  return plain_decoder(fields, attention, qwen_windows(fields));
}

void require_chosen(const ConfigFields& fields, const ExpertShape& experts) {
  if (experts.per_token <= experts.experts) return;
  fields.refuse("num_experts_per_tok", fmt::format("{}", experts.per_token),
                fmt::format("at most the number of experts, {}", experts.experts));
}

/// Experts in every decoder_sparse_step-th layer but those of mlp_only_layers, as all of Qwen's types have it.
class QwenFeedForwards {
 public:
  QwenFeedForwards(const ConfigFields& fields, std::int64_t shared_hidden)
      : step_(fields.size("decoder_sparse_step", 1)), dense_layers_(fields.counts("mlp_only_layers")) {
    experts_ = {.width = fields.size("hidden_size"),
                .experts = fields.size(fields.has("num_local_experts") ? "num_local_experts" : "num_experts"),
                .per_token = fields.size("num_experts_per_tok"),
                .hidden = fields.size("moe_intermediate_size"),
                .shared_hidden = shared_hidden,
                .shared_gate = shared_hidden > 0};
    require_chosen(fields, experts_);
    const bool all_sparse = step_ == 1 && dense_layers_.empty();
    if (!all_sparse) dense_ = {.width = experts_.width, .hidden = fields.size("intermediate_size")};
  }

  void add(LayerGroup& layer, std::int64_t index) const {
    const bool dense = std::find(dense_layers_.begin(), dense_layers_.end(), index) != dense_layers_.end();
    if (dense || (index + 1) % step_ != 0) {
      add_feed_forward(layer, dense_);
    } else {
      add_experts(layer, experts_);
    }
  }

 private:
  std::int64_t step_;
  std::vector<std::int64_t> dense_layers_;
  ExpertShape experts_;
  FeedForwardShape dense_;
};

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
  const ExpertShape experts = {.width = model.width,
                               .experts = fields.size("num_local_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = fields.size("intermediate_size")};
  require_chosen(fields, experts);
  add_experts(layer, experts);
  for (const auto& window : one_window(fields)) add_layer(model.layers, windowed(layer, window));
  return model;
}

ModelSpec read_gpt_oss(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = with_biases(fields, read_attention(fields, {.head_size = 64}), true);
  attention.sinks = true;
  LayerGroup layer = attention_layer(attention);
  const ExpertShape experts = {.width = model.width,
                               .experts = fields.size("num_local_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = fields.size("intermediate_size"),
                               .router_bias = true,
                               .expert_biases = true};
  require_chosen(fields, experts);
  add_experts(layer, experts);
  const auto alternating = [](std::int64_t index) { return sliding_unless(index % 2 == 1); };
  for (const auto& window :
       layer_windows(fields, layer_count(fields, "num_hidden_layers"), std::nullopt, alternating)) {
    add_layer(model.layers, windowed(layer, window));
  }
  return model;
}

struct GemmaForm {
  AttentionDefaults attention = {.head_size = 256};
  std::optional<std::int64_t> vocabulary = {};
  bool head_norms = false;
  /// Norms after attention and feed-forward too.
  bool norms_after = false;
};

ModelSpec gemma_decoder(const ConfigFields& fields, const GemmaForm& form,
                        const std::vector<std::optional<std::int64_t>>& windows) {
  ModelSpec model = read_model(fields, {.tied = true, .vocabulary = form.vocabulary});
  AttentionShape attention = with_biases(fields, read_attention(fields, form.attention));
  attention.head_norms = form.head_norms;
  LayerGroup layer = attention_layer(attention);
  add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size")});
  if (form.norms_after) layer.other_parameters += 2 * model.width;
  for (const auto& window : windows) add_layer(model.layers, windowed(layer, window));
  return model;
}

ModelSpec read_gemma(const ConfigFields& fields) {
  const auto layers = static_cast<std::size_t>(layer_count(fields, "num_hidden_layers"));
  return gemma_decoder(fields, {}, std::vector<std::optional<std::int64_t>>(layers));
}

ModelSpec read_gemma2(const ConfigFields& fields) {
  const auto alternating = [](std::int64_t index) { return sliding_unless(index % 2 == 1); };
  return gemma_decoder(fields, {.norms_after = true},
                       layer_windows(fields, layer_count(fields, "num_hidden_layers"), 4096, alternating));
}

/// Nested configurations of images and text leave out what agrees with the class.
ModelSpec read_gemma3_text(const ConfigFields& fields) {
  const std::int64_t pattern = fields.size("sliding_window_pattern", 6);
  const auto every = [&](std::int64_t index) { return sliding_unless((index + 1) % pattern == 0); };
  return gemma_decoder(fields,
                       {.attention = {.heads = 8, .key_value_heads = 4, .head_size = 256},
                        .vocabulary = 262208,
                        .head_norms = true,
                        .norms_after = true},
                       layer_windows(fields, layer_count(fields, "num_hidden_layers"), 4096, every));
}

/// The text model alone: what encodes images is not counted. The key that ties the head may stand outside of it.
template <ModelSpec (*read_text)(const ConfigFields&)>
ModelSpec read_text_part(const ConfigFields& fields) {
  const ConfigFields text = fields.object("text_config");
  ModelSpec model = read_text(text);
  if (!text.has("tie_word_embeddings")) model.tied_head = fields.flag("tie_word_embeddings", model.tied_head);
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
      const ExpertShape experts = {.width = model.width,
                                   .experts = fields.size("num_experts"),
                                   .per_token = fields.size("top_k_experts"),
                                   .hidden = fields.size("moe_intermediate_size"),
                                   .matrix = "experts.0.gate_proj"};
      require_chosen(fields, experts);
      add_experts(layer, experts);
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
  const std::int64_t hidden = fields.size("intermediate_size");
  const ExpertShape experts = {.width = model.width,
                               .experts = fields.size("num_local_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = hidden,
                               .shared_hidden = hidden};
  require_chosen(fields, experts);
  const std::int64_t step = fields.size("interleave_moe_layer_step", 1);
  const std::optional<std::int64_t> chunk = fields.find_size("attention_chunk_size");
  add_layers(model, layer_count(fields, "num_hidden_layers"), [&](std::int64_t index) {
    LayerGroup layer = windowed(attention_layer(attention), (index + 1) % 4 == 0 ? std::nullopt : chunk);
    if ((index + 1) % step == 0) {
      add_experts(layer, experts);
    } else {
      add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size_mlp")});
    }
    return layer;
  });
  return model;
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
  const ExpertShape experts = {.width = model.width,
                               .experts = fields.size("num_local_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = fields.size("intermediate_size"),
                               .shared_hidden = fields.count("shared_intermediate_size", 0),
                               .router_bias = fields.flag("use_routing_bias", false)};
  require_chosen(fields, experts);
  add_experts(layer, experts);
  layer.count = layer_count(fields, "num_hidden_layers");
  model.layers = {layer};
  return model;
}

ModelSpec read_mimo(const ConfigFields& fields) {
  ModelSpec model = read_qwen2(fields);
  add_next_token_modules(model, model.layers.front(), fields.count("num_nextn_predict_layers", 0));
  return model;
}

/// Step 3.7: windows by layer_types, dense layers first, then experts beside a shared one. Its next-token modules are
/// not published.
ModelSpec read_step3p7(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = read_attention(fields);
  attention.head_norms = true;
  const ExpertShape experts = {.width = model.width,
                               .experts = fields.size("num_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = fields.size("moe_intermediate_size"),
                               .shared_hidden = fields.size("share_expert_dim"),
                               .router_bias = fields.flag("use_moe_router_bias", false)};
  require_chosen(fields, experts);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const std::int64_t dense_layers = fields.count("first_k_dense_replace", 0);
  const auto windows = layer_windows(fields, layers, std::nullopt, [](std::int64_t) { return sliding_unless(true); });
  add_layers(model, layers, [&](std::int64_t index) {
    LayerGroup layer = windowed(attention_layer(attention), windows[static_cast<std::size_t>(index)]);
    if (index < dense_layers) {
      add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size")});
    } else {
      add_experts(layer, experts);
    }
    return layer;
  });
  return model;
}

/// Experts under the names that DeepSeek gave them.
ExpertShape routed_experts(const ConfigFields& fields, std::int64_t width, bool router_bias) {
  const std::int64_t hidden = fields.size("moe_intermediate_size");
  const ExpertShape experts = {.width = width,
                               .experts = fields.size("n_routed_experts"),
                               .per_token = fields.size("num_experts_per_tok"),
                               .hidden = hidden,
                               .shared_hidden = product({fields.count("n_shared_experts", 0), hidden}),
                               .router_bias = router_bias};
  require_chosen(fields, experts);
  return experts;
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
  const ExpertShape experts = routed_experts(fields, model.width, true);
  const std::int64_t layers = layer_count(fields, "num_hidden_layers");
  const std::vector<std::int64_t> windows = one_per_layer(fields, "hybrid_layer_pattern", layers);
  const std::vector<std::int64_t> sparse = one_per_layer(fields, "moe_layer_freq", layers);
  add_layers(model, layers, [&](std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    LayerGroup layer =
        windows[at] == 0 ? attention_layer(full) : windowed(attention_layer(sliding), fields.size("sliding_window"));
    if (sparse[at] == 0) {
      add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size")});
    } else {
      add_experts(layer, experts);
    }
    return layer;
  });
  return model;
}

/// Dense layers first, then experts and shared experts; the next-token modules are further layers of the last kind.
/// @param attention_of  a layer without its feed-forward, by its index
template <class AttentionOf>
void add_dense_then_experts(const ConfigFields& fields, const AttentionOf& attention_of, bool router_bias,
                            ModelSpec& model) {
  const ExpertShape experts = routed_experts(fields, model.width, router_bias);
  const std::int64_t dense_layers = fields.count("first_k_dense_replace", 0);
  add_layers(model, layer_count(fields, "num_hidden_layers"), [&](std::int64_t index) {
    LayerGroup layer = attention_of(index);
    if (index < dense_layers) {
      add_feed_forward(layer, {.width = model.width, .hidden = fields.size("intermediate_size")});
    } else {
      add_experts(layer, experts);
    }
    return layer;
  });
  LayerGroup module = attention_of(0);
  add_experts(module, experts);
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
      fields, [&](std::int64_t) { return attention; }, router_bias, model);
  return model;
}

/// DeepSeek's sparse attention. In layers whose indexer_types are "shared" the choice of a layer before holds.
ModelSpec read_sparse_deepseek(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const LatentAttentionShape shape = read_latent_attention(fields);
  LayerGroup chooses = latent_attention_layer(shape), shares = chooses;
  shares.selected = fields.size("index_topk");
  add_indexer(chooses, shape, {fields.size("index_n_heads"), fields.size("index_head_dim"), *shares.selected});
  const std::vector<std::string> types = fields.words("indexer_types");
  add_dense_then_experts(
      fields,
      [&](std::int64_t index) {
        const auto at = static_cast<std::size_t>(index);
        return at < types.size() && types[at] == "shared" ? shares : chooses;
      },
      true, model);
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
      fields, [&](std::int64_t) { return attention_layer(attention); }, true, model);
  return model;
}

/// Learned positions are looked up as the embedding is, and count to it; n_positions null: nobody says how many.
ModelSpec read_gpt2(const ConfigFields& fields) {
  ModelSpec model;
  model.width = fields.size("n_embd");
  model.vocabulary = fields.size("vocab_size");
  if (fields.has("n_positions") || !fields.names("n_positions")) model.max_context = fields.size("n_positions");
  model.head_parameters = product({model.vocabulary, model.width});
  model.embedding_parameters = model.head_parameters + product({model.max_context.value_or(0), model.width});
  model.tied_head = fields.flag("tie_word_embeddings", true);
  model.extra_other_parameters = 2 * model.width;
  const std::int64_t heads = fields.size("n_head");
  LayerGroup layer = attention_layer({.width = model.width,
                                      .heads = heads,
                                      .key_value_heads = heads,
                                      .head_size = quotient(fields, "n_embd", model.width, "n_head", heads),
                                      .query_key_value_bias = true,
                                      .output_bias = true});
  add_feed_forward(
      layer, {.width = model.width, .hidden = fields.size("n_inner", 4 * model.width), .gated = false, .bias = true});
  layer.other_parameters += 2 * model.width;  // biases of the norms
  layer.count = layer_count(fields, "n_layer");
  model.layers = {layer};
  return model;
}

ModelSpec state_space_model(const ConfigFields& fields, bool tied, LayerGroup layer) {
  ModelSpec model = read_model(fields, {.tied = tied});
  layer.count = layer_count(fields, "num_hidden_layers");
  model.layers = {layer};
  return model;
}

ModelSpec read_mamba(const ConfigFields& fields) {
  if (!fields.has("use_bias")) fields.refuse("use_bias", "missing", "present");
  const std::int64_t width = fields.size("hidden_size");
  const StateSpaceShape shape = {.width = width,
                                 .inner = fields.size("intermediate_size"),
                                 .state_size = fields.size("state_size"),
                                 .kernel = fields.size("conv_kernel"),
                                 .bias = fields.flag("use_bias", false),
                                 .convolution_bias = fields.flag("use_conv_bias", true)};
  return state_space_model(fields, true, mamba_layer(shape, fields.size("time_step_rank")));
}

ModelSpec read_mamba2(const ConfigFields& fields) {
  const std::int64_t heads = fields.size("num_heads");
  const StateSpaceShape shape = {.width = fields.size("hidden_size"),
                                 .inner = product({heads, fields.size("head_dim")}),
                                 .state_size = fields.size("state_size"),
                                 .kernel = fields.size("conv_kernel"),
                                 .bias = fields.flag("use_bias", false),
                                 .convolution_bias = fields.flag("use_conv_bias", true)};
  return state_space_model(fields, false, mamba2_layer(shape, heads, fields.size("n_groups")));
}

/// Nemotron-H: each layer is one of a state space, attention, a feed-forward or experts, without gates.
class NemotronLayers {
 public:
  explicit NemotronLayers(const ConfigFields& fields) : fields_(fields) {
    const std::int64_t width = fields.size("hidden_size"), heads = fields.size("mamba_num_heads");
    const StateSpaceShape shape = {.width = width,
                                   .inner = product({heads, fields.size("mamba_head_dim")}),
                                   .state_size = fields.size("ssm_state_size"),
                                   .kernel = fields.size("conv_kernel"),
                                   .bias = fields.flag("use_bias", false),
                                   .convolution_bias = fields.flag("use_conv_bias", true)};
    state_space_ = mamba2_layer(shape, heads, fields.size("n_groups"));
    AttentionShape attention = with_biases(fields, read_attention(fields));
    attention.head_size = fields.size(fields.has("head_dim") ? "head_dim" : "attention_head_dim");
    attention_ = attention_layer(attention);
    feed_forward_.count = 1;
    add_feed_forward(feed_forward_, {.width = width,
                                     .hidden = fields.size("intermediate_size"),
                                     .gated = false,
                                     .bias = fields.flag("mlp_bias", false)});
    if (!fields.has("n_routed_experts")) return;
    experts_.count = 1;
    const ExpertShape experts = {.width = width,
                                 .experts = fields.size("n_routed_experts"),
                                 .per_token = fields.size("num_experts_per_tok"),
                                 .hidden = fields.size("moe_intermediate_size"),
                                 .gated = false,
                                 .latent = fields.count("moe_latent_size", 0),
                                 .shared_hidden = product({fields.count("n_shared_experts", 0),
                                                           fields.count("moe_shared_expert_intermediate_size", 0)}),
                                 .router_bias = true,
                                 .matrix = "mixer.experts.0.up_proj"};
    require_chosen(fields, experts);
    add_experts(experts_, experts);
  }

  /// From a list of names or a pattern of letters.
  std::vector<LayerGroup> read(std::string_view names, std::string_view pattern) const {
    std::vector<LayerGroup> groups;
    for (const std::string& name : fields_.words(names)) add_layer(groups, named(names, name));
    if (groups.empty()) {
      for (const char letter : fields_.word(pattern, "")) add_layer(groups, named(pattern, std::string(1, letter)));
    }
    return groups;
  }

 private:
  LayerGroup named(std::string_view key, const std::string& name) const {
    if (name == "M" || name == "mamba") return state_space_;
    if (name == "*" || name == "attention") return attention_;
    if (name == "-" || name == "mlp") return feed_forward_;
    if ((name == "E" || name == "moe") && experts_.count > 0) return experts_;
    fields_.refuse(key, "holding " + name, "of M, *, - and E, or mamba, attention, mlp and moe");
  }

  const ConfigFields& fields_;
  LayerGroup state_space_, attention_, feed_forward_, experts_;
};

ModelSpec read_nemotron_h(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  const NemotronLayers layers(fields);
  model.layers = layers.read("layers_block_type", "hybrid_override_pattern");
  if (model.layers.empty()) fields.refuse("hybrid_override_pattern", "missing", "present, or layers_block_type");
  const std::int64_t modules = fields.count("num_nextn_predict_layers", 0);
  if (modules == 0) return model;
  model.next_token_layers = layers.read("mtp_layers_block_type", "mtp_hybrid_override_pattern");
  for (LayerGroup& layer : model.next_token_layers) layer.count *= modules;
  model.next_token_extra_parameters = product({modules, 2, model.width, model.width});
  return model;
}

/// Llama Nemotron: what search left of each layer of a Llama, by block_configs.
ModelSpec read_nemotron_nas(const ConfigFields& fields) {
  ModelSpec model = read_model(fields);
  AttentionShape attention = with_biases(fields, read_attention(fields, {.key_value_heads = 1}));
  const std::vector<ConfigFields> blocks = fields.objects("block_configs");
  for (const ConfigFields& block : blocks) {
    LayerGroup layer{.count = 1};
    const ConfigFields attends = block.object("attention"), feeds = block.object("ffn");
    for (const ConfigFields* part : {&attends, &feeds}) part->require_flag("replace_with_linear", false);
    if (!attends.flag("no_op", false)) {
      const std::int64_t group = attends.size("n_heads_in_group");
      attention.key_value_heads = quotient(attends, "n_heads_in_group", attention.heads, "n_heads_in_group", group);
      layer = windowed(attention_layer(attention), attends.find_size("window_length"));
    }
    if (!feeds.flag("no_op", false)) {
      // As for Llama: two thirds of the multiple, in steps of 256.
      const double wide = 2 * feeds.positive("ffn_mult") * static_cast<double>(model.width) / 3;
      if (!(wide < 0x1p53)) feeds.refuse("ffn_mult", fmt::format("{}", wide), "a width below 2^53");
      const auto hidden = static_cast<std::int64_t>(wide);
      add_feed_forward(layer, {.width = model.width, .hidden = (hidden + 255) / 256 * 256});
    }
    add_layer(model.layers, layer);
  }
  return model;
}

/// The decoder. Every token of the context is cached in each layer, those of the output by self-attention, those of the
/// prompt by cross-attention, and attended to once; so a context is prompt and output together. Idle: the encoder, and
/// the projections that turn its output into keys and values.
ModelSpec read_t5(const ConfigFields& fields) {
  ModelSpec model;
  model.width = fields.size("d_model");
  model.vocabulary = fields.size("vocab_size");
  model.embedding_parameters = model.head_parameters = product({model.vocabulary, model.width});
  model.tied_head = fields.flag("tie_word_embeddings", true);
  const std::int64_t heads = fields.size("num_heads");
  const std::int64_t positions = product({fields.size("relative_attention_num_buckets", 32), heads});
  const std::int64_t encoder_layers = layer_count(fields, "num_layers");
  const std::int64_t decoder_layers =
      fields.has("num_decoder_layers") ? layer_count(fields, "num_decoder_layers") : encoder_layers;
  LayerGroup layer = attention_layer(
      {.width = model.width, .heads = heads, .key_value_heads = heads, .head_size = fields.size("d_kv")});
  const std::int64_t projection = product({model.width, heads, fields.size("d_kv")});
  const std::string feed_forward = fields.word("feed_forward_proj", "relu");
  add_feed_forward(
      layer, {.width = model.width, .hidden = fields.size("d_ff"), .gated = feed_forward.rfind("gated-", 0) == 0});
  model.idle_parameters = product({encoder_layers, layer.dense_parameters + layer.other_parameters}) + model.width +
                          positions + product({decoder_layers, 2, projection});
  layer.dense_parameters += 2 * projection;  // queries and output of the cross-attention
  layer.other_parameters += model.width;
  layer.count = decoder_layers;
  model.layers = {layer};
  model.extra_other_parameters = model.width + positions;
  return model;
}

struct ModelTypeEntry {
  std::string_view name;
  ModelSpec (*read)(const ConfigFields&);
};
constexpr std::array<ModelTypeEntry, 37> model_types = {{{"deepseek_v2", read_deepseek_v2},
                                                         {"deepseek_v3", read_deepseek_v3},
                                                         {"deepseek_v32", read_sparse_deepseek},
                                                         {"gemma", read_gemma},
                                                         {"gemma2", read_gemma2},
                                                         {"gemma3", read_text_part<read_gemma3_text>},
                                                         {"gemma3_text", read_gemma3_text},
                                                         {"gemma4", read_text_part<read_gemma4_text>},
                                                         {"glm4_moe", read_glm4_moe},
                                                         {"glm_moe_dsa", read_sparse_deepseek},
                                                         {"gpt2", read_gpt2},
                                                         {"gpt_oss", read_gpt_oss},
                                                         {"kimi_k2", read_deepseek_v3},
                                                         {"kimi_k25", read_text_part<read_deepseek_v3>},
                                                         {"llama", read_llama},
                                                         {"llama4", read_text_part<read_llama4_text>},
                                                         {"mamba", read_mamba},
                                                         {"mamba2", read_mamba2},
                                                         {"mimo", read_mimo},
                                                         {"mimo_v2_flash", read_mimo_v2},
                                                         {"minimax_m2", read_minimax_m2},
                                                         {"mistral", read_mistral},
                                                         {"mixtral", read_mixtral},
                                                         {"nemotron-nas", read_nemotron_nas},
                                                         {"nemotron_h", read_nemotron_h},
                                                         {"phi3", read_phi3},
                                                         {"qwen2", read_qwen2},
                                                         {"qwen2_moe", read_qwen2_moe},
                                                         {"qwen3", read_qwen3},
                                                         {"qwen3_5", read_text_part<read_dense_delta_nets>},
                                                         {"qwen3_5_moe", read_text_part<read_sparse_delta_nets>},
                                                         {"qwen3_moe", read_qwen3_moe},
                                                         {"qwen3_next", read_sparse_delta_nets},
                                                         {"qwen3_vl", read_text_part<read_qwen3>},
                                                         {"qwen3_vl_moe", read_text_part<read_qwen3_moe>},
                                                         {"step3p7", read_step3p7},
                                                         {"t5", read_t5}}};

constexpr auto model_type_names = [] {
  std::array<std::string_view, model_types.size()> names = {};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = model_types[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> known_model_types() { return model_type_names; }

std::optional<ModelSpec> read_architecture(std::string_view model_type, const ConfigFields& fields) {
  // Speculators' files hold the layer's configuration one level deeper and name no model_type.
  if (fields.has("speculators_model_type")) {
    fields.require_word("speculators_model_type", "", "eagle3");
    return read_eagle3(fields, fields.object("transformer_layer_config"));
  }
  const auto* found = std::find_if(model_types.begin(), model_types.end(),
                                   [&](const ModelTypeEntry& entry) { return entry.name == model_type; });
  if (found == model_types.end()) return std::nullopt;
  const bool other_draft = model_type == "llama" ? is_for(fields, "Eagle") && !is_for(fields, "Eagle3")
                                                 : is_for(fields, "Eagle") || fields.has("draft_vocab_size");
  if (other_draft) {
    fields.refuse("architectures", fmt::format("that of a drafting head of {}", model_type),
                  "LlamaForCausalLMEagle3, the drafting head that is known");
  }
  return found->read(fields);
}

}  // namespace specdec::cost
