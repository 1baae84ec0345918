#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "traces/formats/safetensors_writer.hpp"

namespace specdec::tests {

/// A tensor with its data, row-major.
struct TensorData : traces::TensorHeader {
  std::span<const std::byte> bytes;
};

/// Writes a whole file at once.
/// @throws std::invalid_argument if a tensor's bytes do not match its type and shape, or two have one name
inline void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
  const std::vector<traces::TensorHeader> headers(tensors.begin(), tensors.end());
  for (const TensorData& tensor : tensors) {
    std::int64_t size = traces::size_of(tensor.type);
    for (const std::int64_t side : tensor.shape) size *= side;
    if (static_cast<std::int64_t>(tensor.bytes.size()) != size)
      throw std::invalid_argument("write_safetensors: " + tensor.name + " has bytes of another shape");
  }
  const std::string header = traces::safetensors_header(headers, metadata);
  std::ofstream file(path, std::ios::binary);
  file << header;
  for (const TensorData& tensor : tensors)
    file.write(reinterpret_cast<const char*>(tensor.bytes.data()), static_cast<std::streamsize>(tensor.bytes.size()));
}

}  // namespace specdec::tests
