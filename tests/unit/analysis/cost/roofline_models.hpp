#pragma once

#include <cstdint>

#include "analysis/cost/roofline_cost.hpp"

/// Models and devices of worked examples, from the sizes of their matrices.
namespace specdec::cost::tests {

inline ModelSpec decoder(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t key_value_heads,
                         std::int64_t head_size, std::int64_t feed_forward, std::int64_t vocabulary, bool tied) {
  const std::int64_t queries = heads * head_size, keys = key_value_heads * head_size;
  ModelSpec model;
  model.width = width;
  model.vocabulary = vocabulary;
  LayerGroup& group = model.layers.emplace_back();
  group.count = layers;
  group.dense_parameters = 2 * width * queries + 2 * width * keys + 3 * width * feed_forward;
  group.other_parameters = 2 * width;
  group.cached_values_per_token = 2 * keys;
  group.attention_flops_per_pair = 4 * queries;
  group.cache_shards = key_value_heads;
  group.query_heads = heads;
  model.embedding_parameters = model.head_parameters = vocabulary * width;
  model.tied_head = tied;
  model.extra_other_parameters = width;
  return model;
}

inline ModelSpec llama_70b() { return decoder(8192, 80, 64, 8, 128, 28672, 128256, false); }
inline ModelSpec llama_8b() { return decoder(4096, 32, 32, 8, 128, 14336, 128256, false); }
inline ModelSpec llama_1b() { return decoder(2048, 16, 32, 8, 64, 8192, 128256, true); }

inline ModelSpec mixtral_8x7b() {
  ModelSpec model = decoder(4096, 32, 32, 8, 128, 0, 32000, false);
  model.layers.front().dense_parameters += 4096 * 8;
  model.layers.front().experts = 8;
  model.layers.front().experts_per_token = 2;
  model.layers.front().parameters_per_expert = 3 * 4096 * 14336;
  return model;
}

/// The same without a cache.
inline ModelSpec weights_only(ModelSpec model) {
  for (LayerGroup& group : model.layers) group.cached_values_per_token = group.attention_flops_per_pair = 0;
  return model;
}

/// Links so fast that accelerators share a model for nothing.
inline HardwareSpec device(double bandwidth, double memory_bytes) {
  HardwareSpec hardware;
  hardware.name = "device";
  hardware.memory_bytes.value = memory_bytes;
  hardware.memory_bandwidth_bytes_per_second.value = bandwidth;
  hardware.peak_flops = {{"bf16", {989.4e12}}, {"fp8", {1978.9e12}}};
  hardware.link_bytes_per_second = {1e300};
  return hardware;
}
inline HardwareSpec h100() { return device(3.35e12, 80e9); }
inline HardwareSpec h200() { return device(4.8e12, 141e9); }

inline PlacedModel placed(const ModelSpec& model, NumberType weights, std::int64_t tensor_parallel = 1) {
  PlacedModel result;
  result.model = model;
  result.weight_type = weights;
  result.tensor_parallel = tensor_parallel;
  return result;
}

inline RooflineOptions roofline(const HardwareSpec& hardware, const PlacedModel& target, const PlacedModel& draft) {
  RooflineOptions options;
  options.hardware = hardware;
  options.target = target;
  options.draft = draft;
  return options;
}

inline double tokens_per_step(double alpha, std::int64_t gamma) {
  double tokens = 0, reached = 1;
  for (std::int64_t j = 0; j <= gamma; ++j, reached *= alpha) tokens += reached;
  return tokens;
}

inline double speedup(const RoundCost& price, double alpha, RoundPoint point) {
  const double round = price.round(point).total();
  const double tokens = tokens_per_step(alpha, point.gamma);
  point.gamma = 0;
  return tokens * price.round(point).total() / round;
}

}  // namespace specdec::cost::tests
