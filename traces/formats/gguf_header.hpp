#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/mapped_file.hpp"

namespace specdec::traces {

/// A tensor's entry in a GGUF file.
struct GgufTensor {
  std::string name;
  /// Fastest first: {columns, rows, ...}, up to 4.
  std::vector<std::int64_t> shape;
  /// "F16", "Q4_K", "MXFP4", ...
  std::string_view type;
  std::int64_t elements = 0;
  /// Including the scales of quantized blocks.
  std::int64_t bytes = 0;
};

/// The part of a GGUF file (llama.cpp) before the weights: metadata by key, then each tensor's name, shape, type and
/// place. Movable; views live as long as the object.
///
///   "GGUF"  version u32 = 2 or 3  tensors u64  entries u64
///   entry:  key string, type u32, value                      string: length u64, bytes
///   array:  type u32, length u64, values                     all little-endian, without padding
///   tensor: name string, dimensions u32, each u64, type u32, offset u64 from the beginning of the data
///   data:   from the next multiple of general.alignment (default 32), tensors one after the other, each
///           padded to that alignment
///
/// Source:   https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufHeader {
 public:
  /// @throws FileError  with the byte if the file is truncated, claims more than it holds, or violates the format
  explicit GgufHeader(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::span<const GgufTensor> tensors() const noexcept { return tensors_; }

  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
  /// The value of a key; empty if it is missing.
  /// @throws FileError if it is not an integer in [0, 2^31), or not a string
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// One integer, one flag (1 or 0), or an array of either; empty if the key is missing.
  std::vector<std::int64_t> integers(std::string_view key) const;
  /// Throws a FileError about the value of a key.
  [[noreturn]] void refuse(std::string_view key, std::string found, std::string expected) const;

 private:
  friend class GgufHeaderReader;
  struct Value {
    std::uint32_t type = 0;
    /// 1 except for arrays, whose elements have `type`.
    std::uint64_t count = 1;
    bool is_array = false;
    std::span<const std::byte> bytes;
    std::int64_t offset = 0;
  };

  std::filesystem::path path_;
  MappedFile file_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace specdec::traces
