#include "analysis/cost/stored_weights.hpp"

namespace specdec::cost {

ParametersByType of_layers(std::span<const LayerGroup> layers) {
  ParametersByType sum;
  for (const LayerGroup& group : layers) {
    const auto count = static_cast<double>(group.count);
    sum.dense += count * static_cast<double>(group.dense_parameters - group.unquantized_parameters);
    sum.unquantized += count * static_cast<double>(group.other_parameters + group.unquantized_parameters);
    sum.expert += static_cast<double>(group.count * group.experts) * static_cast<double>(group.parameters_per_expert);
  }
  return sum;
}

ParametersByType all_parameters(const ModelSpec& model) {
  ParametersByType sum = of_layers(model.layers);
  const bool own_head = !model.shared_head && !model.tied_head;
  if (own_head && model.quantized_head) sum.dense += static_cast<double>(model.head_parameters);
  sum.unquantized = static_cast<double>(total_parameters(model)) - sum.dense - sum.expert;
  return sum;
}

StoredWeights stored_weights(const PlacedModel& placed) {
  const ModelSpec& model = placed.model;
  StoredWeights types;
  types.dense = placed.weight_type.value_or(model.weight_type.value_or(NumberType::bf16));
  types.expert = placed.expert_weight_type ? *placed.expert_weight_type
                 : placed.weight_type      ? *placed.weight_type
                                           : model.expert_weight_type.value_or(types.dense);
  types.unquantized = placed.weight_type ? types.dense : model.unquantized_type.value_or(types.dense);
  if (placed.weight_type || placed.expert_weight_type) return types;
  types.quantized_bits = model.quantized_bits;
  if (!model.weight_bytes) return types;
  // The file holds the next-token module too.
  ParametersByType module = of_layers(model.next_token_layers);
  module.unquantized += static_cast<double>(model.next_token_extra_parameters);
  const double by_types = all_parameters(model).bytes(types) + module.bytes(types);
  types.file_share = static_cast<double>(*model.weight_bytes) / by_types;
  return types;
}

}  // namespace specdec::cost
