#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "traces/formats/durable_file.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::traces {

/// What a header says of a tensor.
struct TensorHeader {
  std::string name;
  ElementType type = ElementType::f32;
  /// Row-major; the last index runs fastest.
  std::vector<std::int64_t> shape;
};

/// The first bytes of a safetensors file whose data are those of `tensors`, one behind the other in that order. The
/// data begin at a multiple of 64 bytes.
/// @throws std::invalid_argument if two tensors have one name
std::string safetensors_header(std::span<const TensorHeader> tensors,
                               const std::map<std::string, std::string>& metadata);

/// A tensor with its data, row-major.
struct TensorData : TensorHeader {
  std::span<const std::byte> bytes;
};

/// Writes a whole file at once, durably (DurableFile).
/// @throws FileError if the disk refuses
/// @throws std::invalid_argument if a tensor's bytes are not those that its type and shape take, or two have one name
void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace specdec::traces
