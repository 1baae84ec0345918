#include "analysis/cost/model_spec.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::cost {
namespace {

/// sum over the layers of count * of(group)
template <class PerLayer>
std::int64_t over_layers(const ModelSpec& model, PerLayer of) {
  std::int64_t sum = 0;
  for (const LayerGroup& group : model.layers) sum += group.count * of(group);
  return sum;
}

}  // namespace

bool has_experts(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerGroup& group) { return group.experts > 0; });
}

std::int64_t total_parameters(const ModelSpec& model) {
  const std::int64_t layers = over_layers(model, [](const LayerGroup& group) {
    return group.dense_parameters + group.other_parameters + group.experts * group.parameters_per_expert;
  });
  const std::int64_t embedding = model.shared_embedding ? 0 : model.embedding_parameters;
  const std::int64_t head = model.shared_head || model.tied_head ? 0 : model.head_parameters;
  return layers + embedding + head + model.extra_dense_parameters + model.extra_other_parameters +
         model.idle_parameters;
}

std::int64_t active_parameters(const ModelSpec& model) {
  const std::int64_t layers = over_layers(model, [](const LayerGroup& group) {
    return group.dense_parameters + group.experts_per_token * group.parameters_per_expert;
  });
  return layers + model.head_parameters + model.extra_dense_parameters;
}

std::int64_t cached_values_per_token(const ModelSpec& model) {
  return over_layers(
      model, [](const LayerGroup& group) { return group.cached_values_per_token + group.index_values_per_token; });
}

std::int64_t attention_flops_per_pair(const ModelSpec& model) {
  return over_layers(model, [](const LayerGroup& group) {
    return group.index_flops_per_pair + (group.window || group.selected ? 0 : group.attention_flops_per_pair);
  });
}

double cache_bytes(const ModelSpec& model, double context, double bytes_per_value) {
  core::require_in("cache_bytes", "context", context, 0, core::largest_double);
  core::require_in("cache_bytes", "bytes_per_value", bytes_per_value, 0, core::largest_double);
  double bytes = 0;
  for (const LayerGroup& group : model.layers) {
    const double seen = group.window ? std::min(context, static_cast<double>(*group.window)) : context;
    const double values = static_cast<double>(group.cached_values_per_token) * seen +
                          static_cast<double>(group.index_values_per_token) * context;
    const double per_layer = values * bytes_per_value +
                             static_cast<double>(group.state_values_per_sequence) * std::max(bytes_per_value, 2.0);
    bytes += static_cast<double>(group.count) * per_layer;
  }
  return bytes;
}

double log_share_passed_over(std::int64_t experts, std::int64_t per_token) {
  constexpr std::string_view self = "log_share_passed_over";
  core::require_in(self, "experts", experts, 1, std::numeric_limits<std::int64_t>::max());
  core::require_in(self, "per_token", per_token, 1, experts);
  const auto all = static_cast<double>(experts);
  // Whichever of the two is exact: k/E is rounded before log1p sees it, which shows where k is close to E.
  return 2 * per_token <= experts ? std::log1p(-static_cast<double>(per_token) / all)
                                  : std::log(static_cast<double>(experts - per_token) / all);
}

ModelSpec next_token_module(const ModelSpec& model) {
  if (model.next_token_layers.empty()) {
    throw std::invalid_argument("next_token_module: " + (model.name.empty() ? "the model" : model.name) +
                                " has no next-token module");
  }
  ModelSpec module = model;
  module.name += " next-token module";
  module.aliases.clear();
  module.layers = model.next_token_layers;
  module.extra_dense_parameters = model.next_token_extra_parameters;
  module.extra_other_parameters = 0;
  module.idle_parameters = 0;
  module.shared_embedding = module.shared_head = true;
  module.target_width = model.width;
  module.target = model.name;
  module.weight_bytes.reset();
  module.next_token_layers.clear();
  module.next_token_extra_parameters = 0;
  return module;
}

}  // namespace specdec::cost
