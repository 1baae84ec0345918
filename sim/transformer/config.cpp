#include "sim/transformer/config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"

namespace specdec::sim {
namespace {

using nlohmann::json;
using traces::FileError;

/// One JSON object of the file; every refusal names the file and the field. null counts as absent, as Hugging Face
/// writes it.
class Fields {
 public:
  Fields(const std::filesystem::path& path, const json& object, std::string prefix = "")
      : path_(path), object_(object), prefix_(std::move(prefix)) {}

  [[noreturn]] void refuse(const std::string& name, std::string found, std::string expected) const {
    throw FileError(path_, FileError::whole_file(), prefix_ + name, std::move(found), std::move(expected));
  }

  bool has(const char* name) const { return find(name) != nullptr; }

  std::int64_t size(const char* name) const { return read_size(name, require(name)); }
  std::int64_t size(const char* name, std::int64_t otherwise) const {
    const json* value = find(name);
    return value == nullptr ? otherwise : read_size(name, *value);
  }

  double positive(const char* name) const { return read_positive(name, require(name)); }
  double positive(const char* name, double otherwise) const {
    const json* value = find(name);
    return value == nullptr ? otherwise : read_positive(name, *value);
  }

  bool flag(const char* name, bool otherwise) const {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(name, text(*value), "true or false");
    return value->get<bool>();
  }

  std::string word(const char* name, const std::string& otherwise) const {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(name, text(*value), "a string");
    return value->get<std::string>();
  }

  void require_word(const char* name, const std::string& otherwise, const std::string& supported) const {
    const std::string found = word(name, otherwise);
    if (found != supported) refuse(name, '"' + found + '"', '"' + supported + '"');
  }

  void require_flag(const char* name, bool supported) const {
    if (flag(name, supported) != supported) refuse(name, supported ? "false" : "true", supported ? "true" : "false");
  }

  void require_absent(const char* name) const {
    if (has(name)) refuse(name, text(*find(name)), "absent");
  }

  Fields object(const char* name) const {
    const json& value = require(name);
    if (!value.is_object()) refuse(name, text(value), "an object");
    return {path_, value, prefix_ + name + "."};
  }

 private:
  static std::string text(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
  }

  const json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  const json& require(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) refuse(name, "missing", "present");
    return *value;
  }

  std::int64_t read_size(const char* name, const json& value) const {
    constexpr std::uint64_t largest = std::numeric_limits<std::int32_t>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 || value.get<std::uint64_t>() > largest) {
      refuse(name, text(value), "an integer in [1, 2147483647]");
    }
    return value.get<std::int64_t>();
  }

  double read_positive(const char* name, const json& value) const {
    const double number = value.is_number() ? value.get<double>() : 0;
    if (!(number > 0 && std::isfinite(number))) refuse(name, text(value), "a positive number");
    return number;
  }

  const std::filesystem::path& path_;
  const json& object_;
  std::string prefix_;
};

std::int64_t quotient(const Fields& fields, const char* name, std::int64_t dividend, const char* by,
                      std::int64_t divisor) {
  if (dividend % divisor != 0) {
    fields.refuse(name, fmt::format("{}", dividend), fmt::format("a multiple of {}, {}", by, divisor));
  }
  return dividend / divisor;
}

Llama3RopeScaling read_llama3_scaling(const Fields& fields) {
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
void require_whole_rotation(const Fields& fields) {
  const double part = fields.positive("partial_rotary_factor", 1);
  if (part != 1) fields.refuse("partial_rotary_factor", fmt::format("{}", part), "1");
}

/// The type and its parameters, from rope_parameters or rope_scaling.
void read_rope_type(const Fields& fields, TransformerConfig& config) {
  const char* key = fields.has("rope_type") ? "rope_type" : "type";
  const std::string type = fields.word(key, "default");
  if (type == "llama3") {
    config.rope_scaling = read_llama3_scaling(fields);
  } else if (type != "default") {
    fields.refuse(key, '"' + type + '"', "\"default\" or \"llama3\"");
  }
  require_whole_rotation(fields);
}

void read_rope(const Fields& fields, TransformerConfig& config) {
  config.rope_theta = fields.positive("rope_theta", config.rope_theta);
  if (fields.has("rope_scaling")) read_rope_type(fields.object("rope_scaling"), config);
  if (fields.has("rope_parameters")) {
    const Fields parameters = fields.object("rope_parameters");
    config.rope_theta = parameters.positive("rope_theta", config.rope_theta);
    read_rope_type(parameters, config);
  }
  require_whole_rotation(fields);
}

TransformerConfig read_llama(const Fields& fields) {
  TransformerConfig config;
  config.family = TransformerConfig::Family::llama;
  config.vocab_size = fields.size("vocab_size");
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

TransformerConfig read_gpt2(const Fields& fields) {
  TransformerConfig config;
  config.family = TransformerConfig::Family::gpt2;
  config.vocab_size = fields.size("vocab_size");
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
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const json document = json::parse(text, text + file.bytes().size(), nullptr, false);
  if (!document.is_object()) {
    throw FileError(path, FileError::whole_file(), "file", "something else", "a JSON object");
  }
  const Fields fields(path, document);
  fields.require_absent("quantization_config");
  const std::string type = fields.word("model_type", "");
  if (type == "llama") return read_llama(fields);
  if (type == "gpt2") return read_gpt2(fields);
  fields.refuse("model_type", fields.has("model_type") ? '"' + type + '"' : "missing", "\"llama\" or \"gpt2\"");
}

}  // namespace specdec::sim
