#include "analysis/cost/layer_shapes.hpp"

#include <algorithm>
#include <stdexcept>

namespace specdec::cost {
namespace {

constexpr std::int64_t countable = std::int64_t{1} << 53;

[[noreturn]] void refuse_size() { throw std::overflow_error("2^53 or more of something"); }

}  // namespace

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result) || result >= countable) refuse_size();
  }
  return result;
}

void require_countable(const ModelSpec& model) {
  double sum = static_cast<double>(model.embedding_parameters) + static_cast<double>(model.head_parameters) +
               static_cast<double>(model.extra_dense_parameters) + static_cast<double>(model.idle_parameters);
  for (const std::vector<LayerGroup>* groups : {&model.layers, &model.next_token_layers}) {
    for (const LayerGroup& group : *groups) {
      const auto count = static_cast<double>(group.count);
      const double experts = static_cast<double>(group.experts) * static_cast<double>(group.parameters_per_expert);
      sum +=
          count * (static_cast<double>(group.dense_parameters) + static_cast<double>(group.other_parameters) + experts +
                   static_cast<double>(group.attention_flops_per_pair) +
                   static_cast<double>(group.index_flops_per_pair) + static_cast<double>(group.state_flops_per_token));
    }
  }
  if (!(sum < static_cast<double>(countable))) refuse_size();
}

void add_matrix(LayerGroup& layer, std::string_view name, std::int64_t parameters) {
  layer.dense_parameters += parameters;
  layer.matrices.push_back({name, parameters});
}

LayerGroup attention_layer(const AttentionShape& shape) {
  const std::int64_t input = shape.input > 0 ? shape.input : shape.width;
  const std::int64_t queries = product({shape.heads, shape.head_size});
  const std::int64_t keys = product({shape.key_value_heads, shape.head_size});
  const std::int64_t value_size = shape.value_size > 0 ? shape.value_size : shape.head_size;
  const std::int64_t values = product({shape.key_value_heads, value_size});
  const std::int64_t outputs = product({shape.heads, value_size});
  const std::int64_t query_outputs = shape.gated ? 2 * queries : queries;
  LayerGroup layer{.count = 1};
  add_matrix(layer, "self_attn.q_proj", product({input, query_outputs}));
  add_matrix(layer, "self_attn.k_proj", product({input, keys}));
  if (!shape.values_are_keys) add_matrix(layer, "self_attn.v_proj", product({input, values}));
  add_matrix(layer, "self_attn.o_proj", product({outputs, shape.width}));
  layer.other_parameters = shape.width;
  if (shape.query_key_value_bias) layer.other_parameters += query_outputs + keys + values;
  if (shape.output_bias) layer.other_parameters += shape.width;
  if (shape.head_norms) layer.other_parameters += 2 * shape.head_size;
  if (shape.sinks) layer.other_parameters += shape.heads;
  layer.cached_values_per_token = keys + values;
  layer.attention_flops_per_pair = 2 * (queries + outputs);
  layer.cache_shards = shape.key_value_heads;
  layer.query_heads = shape.heads;
  return layer;
}

LayerGroup latent_attention_layer(const LatentAttentionShape& shape) {
  const std::int64_t cached = shape.key_value_rank + shape.rotary;
  const std::int64_t queries = product({shape.heads, shape.content + shape.rotary});
  const std::int64_t values = product({shape.heads, shape.value});
  LayerGroup layer{.count = 1};
  if (shape.query_rank) {
    add_matrix(layer, "self_attn.q_a_proj", product({shape.width, *shape.query_rank}));
    add_matrix(layer, "self_attn.q_b_proj", product({*shape.query_rank, queries}));
  } else {
    add_matrix(layer, "self_attn.q_proj", product({shape.width, queries}));
  }
  add_matrix(layer, "self_attn.kv_a_proj_with_mqa", product({shape.width, cached}));
  add_matrix(layer, "self_attn.kv_b_proj", product({shape.key_value_rank, shape.heads, shape.content + shape.value}));
  add_matrix(layer, "self_attn.o_proj", product({values, shape.width}));
  layer.other_parameters = shape.width + shape.query_rank.value_or(0) + shape.key_value_rank;
  if (shape.bias) layer.other_parameters += shape.query_rank.value_or(0) + cached + shape.width;
  layer.cached_values_per_token = cached;
  layer.latent = true;
  layer.attention_flops_per_pair = product({2, shape.heads, cached + shape.key_value_rank});
  layer.query_heads = shape.heads;
  return layer;
}

void add_indexer(LayerGroup& layer, std::int64_t width, std::int64_t query_width, const IndexerShape& indexer) {
  add_matrix(layer, "self_attn.indexer.wq_b", product({query_width, indexer.heads, indexer.size}));
  add_matrix(layer, "self_attn.indexer.wk", product({width, indexer.size}));
  add_matrix(layer, "self_attn.indexer.weights_proj", product({width, indexer.heads}));
  layer.other_parameters += 2 * indexer.size;  // norm of the keys, with a bias
  layer.selected = indexer.selected;
  layer.index_values_per_token = indexer.size;
  layer.index_flops_per_pair = product({2, indexer.heads, indexer.size});
}

LayerGroup compressed_attention_layer(const CompressedAttentionShape& shape) {
  const std::int64_t queries = product({shape.heads, shape.head_size});
  LayerGroup layer{.count = 1};
  add_matrix(layer, "self_attn.wq_a", product({shape.width, shape.query_rank}));
  add_matrix(layer, "self_attn.wq_b", product({shape.query_rank, queries}));
  add_matrix(layer, "self_attn.wkv", product({shape.width, shape.head_size}));
  add_matrix(layer, "self_attn.wo_a", product({queries, shape.output_rank}));
  add_matrix(layer, "self_attn.wo_b", product({shape.output_groups, shape.output_rank, shape.width}));
  layer.other_parameters = shape.width + shape.query_rank + shape.head_size + shape.heads;
  layer.latent = true;
  layer.query_heads = shape.heads;
  const std::int64_t every = std::max<std::int64_t>(1, shape.ratio);
  layer.cached_values_per_token = shape.head_size / every;
  layer.attention_flops_per_pair = 4 * queries / every;
  if (shape.ratio == 0) {
    layer.window = shape.window;
    return layer;
  }
  // Vectors of 4 positions reach back into those of the one before, by matrices of their own.
  add_matrix(layer, "self_attn.compressor", product({shape.ratio == 4 ? 4 : 2, shape.width, shape.head_size}));
  layer.state_values_per_sequence = product({shape.window, shape.head_size});
  layer.state_flops_per_token = product({4, shape.window, queries});
  return layer;
}

LayerGroup delta_net_layer(const DeltaNetShape& shape) {
  const std::int64_t keys = product({shape.key_heads, shape.key_size});
  const std::int64_t values = product({shape.value_heads, shape.value_size});
  const std::int64_t channels = 2 * keys + values;
  const std::int64_t states = product({shape.value_heads, shape.key_size, shape.value_size});
  LayerGroup layer{.count = 1};
  // Queries, keys, values and the gate of the output; decay and step size per value head; the output.
  add_matrix(layer, "linear_attn.in_proj_qkvz", product({shape.width, 2 * keys + 2 * values}));
  add_matrix(layer, "linear_attn.in_proj_ba", product({2, shape.width, shape.value_heads}));
  add_matrix(layer, "linear_attn.out_proj", product({values, shape.width}));
  layer.other_parameters = shape.width + product({channels, shape.kernel}) + 2 * shape.value_heads + shape.value_size;
  layer.state_values_per_sequence = states + product({channels, shape.kernel - 1});
  layer.state_flops_per_token = 7 * states + product({2, channels, shape.kernel});
  layer.cache_shards = shape.key_heads;
  return layer;
}

LayerGroup mamba_layer(const StateSpaceShape& shape, std::int64_t time_step_rank) {
  const std::int64_t state = product({shape.inner, shape.state_size});
  LayerGroup layer{.count = 1};
  add_matrix(layer, "mixer.in_proj", product({2, shape.width, shape.inner}));
  add_matrix(layer, "mixer.x_proj", product({shape.inner, time_step_rank + 2 * shape.state_size}));
  add_matrix(layer, "mixer.dt_proj", product({time_step_rank, shape.inner}));
  add_matrix(layer, "mixer.out_proj", product({shape.inner, shape.width}));
  // Norm, convolution, bias of the step sizes, decays, skip.
  layer.other_parameters = shape.width + product({shape.inner, shape.kernel}) + 2 * shape.inner + state;
  if (shape.bias) layer.other_parameters += 2 * shape.inner + shape.width;
  if (shape.convolution_bias) layer.other_parameters += shape.inner;
  layer.state_values_per_sequence = state + product({shape.inner, shape.kernel - 1});
  layer.state_flops_per_token = 5 * state + product({2, shape.inner, shape.kernel});
  layer.cache_shards = shape.inner;
  return layer;
}

LayerGroup mamba2_layer(const StateSpaceShape& shape, std::int64_t heads, std::int64_t groups) {
  const std::int64_t state = product({shape.inner, shape.state_size});
  const std::int64_t shared = product({2, groups, shape.state_size});
  const std::int64_t channels = shape.inner + shared;
  const std::int64_t projected = 2 * shape.inner + shared + heads;
  LayerGroup layer{.count = 1};
  add_matrix(layer, "mixer.in_proj", product({shape.width, projected}));
  add_matrix(layer, "mixer.out_proj", product({shape.inner, shape.width}));
  // Two norms, convolution; step size, decay and skip per head.
  layer.other_parameters = shape.width + shape.inner + product({channels, shape.kernel}) + 3 * heads;
  if (shape.bias) layer.other_parameters += projected + shape.width;
  if (shape.convolution_bias) layer.other_parameters += channels;
  layer.state_values_per_sequence = state + product({channels, shape.kernel - 1});
  layer.state_flops_per_token = 5 * state + product({2, channels, shape.kernel});
  layer.cache_shards = heads;
  return layer;
}

void add_feed_forward(LayerGroup& layer, const FeedForwardShape& shape) {
  const std::int64_t matrix = product({shape.width, shape.hidden});
  if (shape.gated) add_matrix(layer, "mlp.gate_proj", matrix);
  add_matrix(layer, "mlp.up_proj", matrix);
  add_matrix(layer, "mlp.down_proj", matrix);
  layer.other_parameters += shape.width;
  if (shape.bias) layer.other_parameters += (shape.gated ? 2 : 1) * shape.hidden + shape.width;
}

void add_experts(LayerGroup& layer, const ExpertShape& shape) {
  add_matrix(layer, "mlp.gate", product({shape.width, shape.experts}));
  if (shape.shared_hidden > 0) {
    const std::int64_t matrix = product({shape.width, shape.shared_hidden});
    if (shape.gated) add_matrix(layer, "mlp.shared_experts.gate_proj", matrix);
    add_matrix(layer, "mlp.shared_experts.up_proj", matrix);
    add_matrix(layer, "mlp.shared_experts.down_proj", matrix);
  }
  if (shape.shared_gate) add_matrix(layer, "mlp.shared_expert_gate", shape.width);
  layer.other_parameters += shape.width;
  if (shape.router_bias) layer.other_parameters += shape.experts;
  layer.experts = shape.experts;
  layer.experts_per_token = shape.per_token;
  layer.expert_matrix = shape.matrix;
  if (shape.latent > 0) {
    add_matrix(layer, "mlp.fc1_latent_proj", product({shape.width, shape.latent}));
    add_matrix(layer, "mlp.fc2_latent_proj", product({shape.latent, shape.width}));
  }
  const std::int64_t sides = shape.latent > 0 ? shape.latent : shape.width;
  layer.parameters_per_expert = product({shape.gated ? 3 : 2, sides, shape.hidden});
  if (shape.expert_biases) layer.parameters_per_expert += 2 * shape.hidden + shape.width;
}

void add_layer(std::vector<LayerGroup>& groups, const LayerGroup& layer) {
  const auto like = std::find_if(groups.begin(), groups.end(), [&](LayerGroup group) {
    group.count = layer.count;
    return group == layer;
  });
  if (like == groups.end()) {
    groups.push_back(layer);
  } else {
    like->count += layer.count;
  }
}

}  // namespace specdec::cost
