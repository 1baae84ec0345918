#pragma once

#include <optional>
#include <span>

#include "analysis/cost/roofline_cost.hpp"

namespace specdec::cost {

// Internal header of the library; it is not installed.

/// Types that the weights are stored in, their bits, and what the file's size says beside them.
struct StoredWeights {
  NumberType dense = NumberType::bf16, expert = NumberType::bf16, unquantized = NumberType::bf16;
  /// Bits of the model's quantised weights; the user's type is that of all weights.
  std::optional<double> quantized_bits = {};
  /// Bytes of the file / bytes by types; 1 where the file does not say or the types are the user's.
  double file_share = 1;

  double bytes_of(NumberType type) const {
    const bool by_groups = quantized_bits && type != unquantized;
    return file_share * (by_groups ? *quantized_bits : stored_bits(type)) / 8;
  }
};

/// Numbers of parameters by the type that they are stored in.
struct ParametersByType {
  double dense = 0, expert = 0, unquantized = 0;

  double bytes(const StoredWeights& types) const {
    return dense * types.bytes_of(types.dense) + expert * types.bytes_of(types.expert) +
           unquantized * types.bytes_of(types.unquantized);
  }
};

ParametersByType of_layers(std::span<const LayerGroup> layers);

/// Parameters of the whole model, its head included.
ParametersByType all_parameters(const ModelSpec& model);

StoredWeights stored_weights(const PlacedModel& placed);

}  // namespace specdec::cost
