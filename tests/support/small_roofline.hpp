#pragma once

#include <cstdint>
#include <memory>

#include "analysis/cost/roofline_cost.hpp"

namespace specdec::test_support {

/// 8 billion parameters and 1 billion on a device of 3.35 TB/s and 989 TFLOP/s.
inline std::shared_ptr<const cost::IterationCost> small_roofline() {
  const auto model = [](std::int64_t layers, std::int64_t parameters, std::int64_t cached, std::int64_t flops) {
    cost::ModelSpec spec;
    spec.width = 4096;
    spec.vocabulary = 128256;
    cost::LayerGroup group;
    group.count = layers;
    group.dense_parameters = parameters;
    group.cached_values_per_token = cached;
    group.attention_flops_per_pair = flops;
    group.cache_shards = 8;
    spec.layers = {group};
    spec.embedding_parameters = spec.head_parameters = spec.width * spec.vocabulary;
    return spec;
  };
  cost::RooflineOptions options;
  options.hardware.name = "test";
  options.hardware.memory_bytes.value = 80e9;
  options.hardware.memory_bandwidth_bytes_per_second.value = 3.35e12;
  options.hardware.peak_flops["bf16"].value = 989e12;
  options.target.model = model(32, 218'000'000, 2048, 16384);
  options.draft = cost::PlacedModel{model(16, 60'000'000, 1024, 8192)};
  options.losses.launch_seconds = {1e-4, 1e-4, 1e-4};
  options.replicates = 0;
  return std::make_shared<cost::RooflineCost>(options);
}

}  // namespace specdec::test_support
