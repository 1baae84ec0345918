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

/// A tensor with its data, row-major.
struct TensorData : TensorHeader {
  std::span<const std::byte> bytes;
};

/// Writes a whole file at once, durably (DurableFile).
/// @throws FileError if the disk reports an error
/// @throws std::invalid_argument if a tensor's bytes do not match its type and shape, or two have one name
void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace specdec::traces
