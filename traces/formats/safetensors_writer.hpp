#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "traces/formats/safetensors.hpp"

namespace specdec::traces {

/// A tensor's entry in a header.
struct TensorHeader {
  std::string name;
  ElementType type = ElementType::f32;
  /// Row-major; the last index runs fastest.
  std::vector<std::int64_t> shape;
};

/// The first bytes of a safetensors file whose data are those of `tensors`, one after the other in that order. The
/// data begin at a multiple of 64 bytes.
/// @throws std::invalid_argument if two tensors have one name
std::string safetensors_header(std::span<const TensorHeader> tensors,
                               const std::map<std::string, std::string>& metadata);

}  // namespace specdec::traces
