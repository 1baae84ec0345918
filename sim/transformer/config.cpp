#include "sim/transformer/config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/cost/architecture_parts.hpp"
#include "traces/formats/config_fields.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::sim {
namespace {

using cost::quotient;
using traces::ConfigFields;

Llama3RopeScaling read_llama3_scaling(const ConfigFields& fields) {
  Llama3RopeScaling scaling;
  scaling.factor = fields.positive("factor");
  scaling.low_freq_factor = fields.positive("low_freq_factor");
  scaling.high_freq_factor = fields.positive("high_freq_factor");
  scaling.original_max_position_embeddings = fields.positive("original_max_position_embeddings");
  if (!(scaling.low_freq_factor < scaling.high_freq_factor)) {
    fields.refuse("low_freq_factor", fmt::format("{}", scaling.low_freq_factor),
                  fmt::format("below high_freq_factor, {}", scaling.high_freq_factor));
  }
  return scaling;
}

/// Some models rotate only part of a head.
void require_whole_rotation(const ConfigFields& fields) {
  const double part = fields.positive("partial_rotary_factor", 1);
  if (part != 1) fields.refuse("partial_rotary_factor", fmt::format("{}", part), "1");
}

/// The type and its parameters, from rope_parameters or rope_scaling.
void read_rope_type(const ConfigFields& fields, TransformerConfig& config) {
  const char* key = fields.has("rope_type") ? "rope_type" : "type";
  const std::string type = fields.word(key, "default");
  if (type == "llama3") {
    config.rope_scaling = read_llama3_scaling(fields);
  } else if (type != "default") {
    fields.refuse(key, '"' + type + '"', "\"default\" or \"llama3\"");
  }
  require_whole_rotation(fields);
}

void read_rope(const ConfigFields& fields, TransformerConfig& config) {
  config.rope_theta = fields.positive("rope_theta", config.rope_theta);
  if (fields.has("rope_scaling")) read_rope_type(fields.object("rope_scaling"), config);
  if (fields.has("rope_parameters")) {
    const ConfigFields parameters = fields.object("rope_parameters");
    config.rope_theta = parameters.positive("rope_theta", config.rope_theta);
    read_rope_type(parameters, config);
  }
  require_whole_rotation(fields);
}

TransformerConfig read_llama(const ConfigFields& fields) {
  TransformerConfig config;
  config.family = TransformerConfig::Family::llama;
  config.vocab_size = fields.size("vocab_size");
  config.known_tokens = fields.size("draft_vocab_size", config.vocab_size);
  config.width = fields.size("hidden_size");
  config.feed_forward = fields.size("intermediate_size");
  config.layers = fields.size("num_hidden_layers");
  config.heads = fields.size("num_attention_heads");
  config.key_value_heads = fields.size("num_key_value_heads", config.heads);
  quotient(fields, "num_attention_heads", config.heads, "num_key_value_heads", config.key_value_heads);
  config.head_size = fields.has("head_dim")
                         ? fields.size("head_dim")
                         : quotient(fields, "hidden_size", config.width, "num_attention_heads", config.heads);
  if (config.head_size % 2 != 0) fields.refuse("head_dim", fmt::format("{}", config.head_size), "even");
  config.max_length = fields.size("max_position_embeddings", 2048);
  config.norm_epsilon = fields.positive("rms_norm_eps", 1e-6);
  config.tied_head = fields.flag("tie_word_embeddings", false);
  config.attention_bias = fields.flag("attention_bias", false);
  config.feed_forward_bias = fields.flag("mlp_bias", false);
  fields.require_word("hidden_act", "silu", "silu");
  read_rope(fields, config);
  return config;
}

TransformerConfig read_gpt2(const ConfigFields& fields) {
  TransformerConfig config;
  config.family = TransformerConfig::Family::gpt2;
  config.vocab_size = config.known_tokens = fields.size("vocab_size");
  config.width = fields.size("n_embd");
  config.feed_forward = fields.size("n_inner", 4 * config.width);
  config.layers = fields.size("n_layer");
  config.heads = fields.size("n_head");
  config.key_value_heads = config.heads;
  config.head_size = quotient(fields, "n_embd", config.width, "n_head", config.heads);
  config.max_length = fields.size("n_positions", 1024);
  config.norm_epsilon = fields.positive("layer_norm_epsilon", 1e-5);
  config.tied_head = fields.flag("tie_word_embeddings", true);
  config.attention_bias = true;
  config.feed_forward_bias = true;
  fields.require_word("activation_function", "gelu_new", "gelu_new");
  fields.require_flag("scale_attn_weights", true);
  fields.require_flag("scale_attn_by_inverse_layer_idx", false);
  return config;
}

}  // namespace

TransformerConfig read_config(const std::filesystem::path& path) {
  const traces::MappedFile file(path);
  const nlohmann::json document = traces::parse_config(traces::text_of(file.bytes()), path);
  const ConfigFields fields(path, document);
  fields.require_absent("quantization_config");
  const std::string type = fields.word("model_type", "");
  if (type == "llama") return read_llama(fields);
  if (type == "gpt2") return read_gpt2(fields);
  fields.refuse("model_type", fields.has("model_type") ? '"' + type + '"' : "missing", "\"llama\" or \"gpt2\"");
}

}  // namespace specdec::sim
