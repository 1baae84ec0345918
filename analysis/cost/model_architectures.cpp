#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/cost/architecture_parts.hpp"
#include "analysis/cost/model_config.hpp"

namespace specdec::cost {
namespace {

using traces::ConfigFields;

struct DecoderForm {
  ModelDefaults model = {};
  bool feed_forward_bias = false;
  /// Norms after attention and feed-forward too.
  bool norms_after = false;
};

/// Attention and a gated feed-forward, alike in all layers but for their windows.
ModelSpec plain_decoder(const ConfigFields& fields, const AttentionShape& attention,
                        const std::vector<std::optional<std::int64_t>>& windows, const DecoderForm& form = {}) {
  ModelSpec model = read_model(fields, form.model);
  LayerGroup layer = attention_layer(attention);
  add_feed_forward(layer,
                   {.width = model.width, .hidden = fields.size("intermediate_size"), .bias = form.feed_forward_bias});
  if (form.norms_after) layer.other_parameters += 2 * model.width;
  for (const auto& window : windows) add_layer(model.layers, windowed(layer, window));
  return model;
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
                       std::vector<std::optional<std::int64_t>>(layers),
                       {.feed_forward_bias = fields.flag("mlp_bias", false)});
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

ModelSpec read_gemma(const ConfigFields& fields) {
  const auto layers = static_cast<std::size_t>(layer_count(fields, "num_hidden_layers"));
  return plain_decoder(fields, with_biases(fields, read_attention(fields, {.head_size = 256})),
                       std::vector<std::optional<std::int64_t>>(layers), {.model = {.tied = true}});
}

ModelSpec read_gemma2(const ConfigFields& fields) {
  const auto alternating = [](std::int64_t index) { return sliding_unless(index % 2 == 1); };
  return plain_decoder(fields, with_biases(fields, read_attention(fields, {.head_size = 256})),
                       layer_windows(fields, layer_count(fields, "num_hidden_layers"), 4096, alternating),
                       {.model = {.tied = true}, .norms_after = true});
}

/// Nested configurations of images and text leave out what agrees with the class.
ModelSpec read_gemma3_text(const ConfigFields& fields) {
  const std::int64_t pattern = fields.size("sliding_window_pattern", 6);
  const auto every = [&](std::int64_t index) { return sliding_unless((index + 1) % pattern == 0); };
  AttentionShape attention =
      with_biases(fields, read_attention(fields, {.heads = 8, .key_value_heads = 4, .head_size = 256}));
  attention.head_norms = true;
  return plain_decoder(fields, attention, layer_windows(fields, layer_count(fields, "num_hidden_layers"), 4096, every),
                       {.model = {.tied = true, .vocabulary = 262208}, .norms_after = true});
}

/// The text model alone: what encodes images is not counted. The key that ties the head may stand outside of it.
template <ModelSpec (*read_text)(const ConfigFields&)>
ModelSpec read_text_part(const ConfigFields& fields) {
  const ConfigFields text = fields.object("text_config");
  ModelSpec model = read_text(text);
  if (!text.has("tie_word_embeddings")) model.tied_head = fields.flag("tie_word_embeddings", model.tied_head);
  return model;
}

/// DFlash: layers of Qwen3 of which one pass drafts all tokens, with the target's embedding and head; a projection of
/// some of the target's states to one, from which every layer's keys and values come. It counts as read in each pass.
ModelSpec read_dflash(const ConfigFields& fields) {
  AttentionShape attention = with_biases(fields, read_attention(fields, {.head_size = 128}));
  attention.head_norms = true;
  ModelSpec model = plain_decoder(fields, attention, qwen_windows(fields));
  const ConfigFields draft = fields.object("dflash_config");
  draft.require_absent("selector_rank");
  const auto states = static_cast<std::int64_t>(draft.counts("target_layer_ids").size());
  model.extra_dense_parameters = product({states, model.width, model.width});
  model.extra_other_parameters += model.width;
  model.shared_embedding = model.shared_head = model.drafts_in_parallel = true;
  model.target_width = model.width;
  return model;
}

ModelSpec read_mimo(const ConfigFields& fields) {
  ModelSpec model = read_qwen2(fields);
  add_next_token_modules(model, model.layers.front(), fields.count("num_nextn_predict_layers", 0));
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
  const StateSpaceShape shape = read_state_space(fields, fields.size("intermediate_size"), "state_size");
  return state_space_model(fields, true, mamba_layer(shape, fields.size("time_step_rank")));
}

ModelSpec read_mamba2(const ConfigFields& fields) {
  const std::int64_t heads = fields.size("num_heads");
  const StateSpaceShape shape = read_state_space(fields, product({heads, fields.size("head_dim")}), "state_size");
  return state_space_model(fields, false, mamba2_layer(shape, heads, fields.size("n_groups")));
}

/// Nemotron-H: each layer is one of a state space, attention, a feed-forward or experts, without gates.
class NemotronLayers {
 public:
  explicit NemotronLayers(const ConfigFields& fields) : fields_(fields) {
    const std::int64_t width = fields.size("hidden_size"), heads = fields.size("mamba_num_heads");
    const StateSpaceShape shape =
        read_state_space(fields, product({heads, fields.size("mamba_head_dim")}), "ssm_state_size");
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
    ExpertShape experts = read_experts(fields, "n_routed_experts", "moe_intermediate_size");
    experts.gated = false;
    experts.latent = fields.count("moe_latent_size", 0);
    experts.shared_hidden =
        product({fields.count("n_shared_experts", 0), fields.count("moe_shared_expert_intermediate_size", 0)});
    experts.router_bias = true;
    experts.matrix = "mixer.experts.0.up_proj";
    add_experts(fields, experts_, experts);
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
constexpr std::array<ModelTypeEntry, 44> model_types = {{{"deepseek_v2", read_deepseek_v2},
                                                         {"deepseek_v3", read_deepseek_v3},
                                                         {"deepseek_v32", read_sparse_deepseek},
                                                         {"deepseek_v4", read_deepseek_v4},
                                                         {"gemma", read_gemma},
                                                         {"gemma2", read_gemma2},
                                                         {"gemma3", read_text_part<read_gemma3_text>},
                                                         {"gemma3_text", read_gemma3_text},
                                                         {"gemma4", read_text_part<read_gemma4_text>},
                                                         {"glm4_moe", read_glm4_moe},
                                                         {"glm4_moe_lite", read_deepseek_v3},
                                                         {"glm_moe_dsa", read_sparse_deepseek},
                                                         {"gpt2", read_gpt2},
                                                         {"gpt_oss", read_gpt_oss},
                                                         {"kimi_k2", read_deepseek_v3},
                                                         {"kimi_k25", read_text_part<read_deepseek_v3>},
                                                         {"kimi_k3", read_text_part<read_kimi_linear>},
                                                         {"kimi_linear", read_kimi_linear},
                                                         {"llama", read_llama},
                                                         {"llama4", read_text_part<read_llama4_text>},
                                                         {"mamba", read_mamba},
                                                         {"mamba2", read_mamba2},
                                                         {"mimo", read_mimo},
                                                         {"mimo_v2_flash", read_mimo_v2},
                                                         {"minimax_m2", read_minimax_m2},
                                                         {"minimax_m3", read_minimax_m3},
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
                                                         {"qwen3_5_moe_text", read_sparse_delta_nets},
                                                         {"qwen3_5_text", read_dense_delta_nets},
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
  if (is_for(fields, "DFlashDraftModel")) return read_dflash(fields);
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
