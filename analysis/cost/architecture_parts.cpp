#include "analysis/cost/architecture_parts.hpp"

#include <fmt/format.h>

#include <utility>

namespace specdec::cost {

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

ModelSpec read_model(const ConfigFields& fields, const ModelDefaults& otherwise) {
  ModelSpec model;
  model.width = fields.size("hidden_size");
  model.vocabulary = fields.size("vocab_size", otherwise.vocabulary);
  model.max_context = fields.find_size("max_position_embeddings");
  model.embedding_parameters = model.head_parameters = product({model.vocabulary, model.width});
  model.tied_head = fields.flag("tie_word_embeddings", otherwise.tied);
  model.extra_other_parameters = model.width;
  return model;
}

void add_next_token_modules(ModelSpec& model, LayerGroup layer, std::int64_t modules) {
  if (modules == 0) return;
  layer.other_parameters += 3 * model.width;
  layer.count = modules;
  model.next_token_layers = {std::move(layer)};
  model.next_token_extra_parameters = product({modules, 2, model.width, model.width});
}

AttentionShape read_attention(const ConfigFields& fields, const AttentionDefaults& otherwise) {
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

AttentionShape with_biases(const ConfigFields& fields, AttentionShape shape, bool otherwise) {
  shape.query_key_value_bias = shape.output_bias = fields.flag("attention_bias", otherwise);
  return shape;
}

void require_one_per_layer(const ConfigFields& fields, std::string_view name, std::size_t entries, std::int64_t count) {
  if (std::cmp_equal(entries, count)) return;
  fields.refuse(name, fmt::format("{} entries", entries), fmt::format("one per layer, num_hidden_layers is {}", count));
}

LayerGroup windowed(LayerGroup layer, std::optional<std::int64_t> window) {
  layer.window = window;
  return layer;
}

std::vector<std::optional<std::int64_t>> one_window(const ConfigFields& fields) {
  const auto layers = static_cast<std::size_t>(layer_count(fields, "num_hidden_layers"));
  return std::vector<std::optional<std::int64_t>>(layers, fields.find_size("sliding_window"));
}

ExpertShape read_experts(const ConfigFields& fields, std::string_view number, std::string_view hidden,
                         std::string_view per_token) {
  return {.width = fields.size("hidden_size"),
          .experts = fields.size(number),
          .per_token = fields.size(per_token),
          .hidden = fields.size(hidden)};
}

StateSpaceShape read_state_space(const ConfigFields& fields, std::int64_t inner, std::string_view state_size) {
  return {.width = fields.size("hidden_size"),
          .inner = inner,
          .state_size = fields.size(state_size),
          .kernel = fields.size("conv_kernel"),
          .bias = fields.flag("use_bias", false),
          .convolution_bias = fields.flag("use_conv_bias", true)};
}

void add_experts(const ConfigFields& fields, LayerGroup& layer, const ExpertShape& experts) {
  if (experts.per_token > experts.experts)
    fields.refuse("num_experts_per_tok", fmt::format("{}", experts.per_token),
                  fmt::format("at most the number of experts, {}", experts.experts));
  add_experts(layer, experts);
}

}  // namespace specdec::cost
