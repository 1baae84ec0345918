#include "traces/formats/safetensors_writer.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace specdec::traces {
namespace {

using nlohmann::json;

std::int64_t bytes_of(const TensorHeader& tensor) {
  std::int64_t bytes = size_of(tensor.type);
  for (const std::int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

}  // namespace

std::string safetensors_header(std::span<const TensorHeader> tensors,
                               const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const TensorHeader& tensor : tensors) {
    if (header.contains(tensor.name)) {
      throw std::invalid_argument(
          fmt::format("safetensors_header: name is {} twice, but must be another", tensor.name));
    }
    const std::int64_t end = offset + bytes_of(tensor);
    header[tensor.name] = {{"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  constexpr std::size_t alignment = 64;
  std::string text(sizeof(std::uint64_t), '\0');
  text += header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');
  const std::uint64_t length = text.size() - sizeof(std::uint64_t);
  std::memcpy(text.data(), &length, sizeof length);
  return text;
}

}  // namespace specdec::traces
