#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/mapped_file.hpp"

namespace specdec::traces {

// The safetensors container, little-endian:
//
//   u64 N, 2 <= N <= 100,000,000 | N bytes of JSON, starting with '{', padded with spaces | data
//
//   {"__metadata__":{"format":"pt"},"wte.weight":{"dtype":"F16","shape":[2048,192],"data_offsets":[0,786432]}}
//
// Offsets count from the first data byte. Sorted by offset the tensors lie end to end from 0 to the end of the
// file, each exactly as long as its type and shape require. Data need not be aligned.

/// Supported element types; files with any other are rejected.
enum class ElementType { f64, f32, f16, bf16, i64, i32, u8, boolean };

/// The type as the file spells it, for instance "BF16".
std::string_view name_of(ElementType type);
/// Bytes of one element.
std::int64_t size_of(ElementType type);

/// One tensor of a file. `bytes` points into the mapped file and lives as long as it does.
struct Tensor {
  std::string name;
  ElementType type = ElementType::f32;
  /// Row-major; the last index runs fastest. Empty for a scalar.
  std::vector<std::int64_t> shape;
  /// Offset of the first byte in the file.
  std::int64_t offset = 0;
  std::span<const std::byte> bytes;

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes.size()) / size_of(type); }
};

/// The shape as printed in messages, for instance "[2048, 192]".
std::string shape_text(std::span<const std::int64_t> shape);

/// A memory-mapped safetensors file whose header has been checked completely against the file's size.
class SafetensorsFile {
 public:
  /// @throws FileError naming the byte or the tensor if the file is not readable, its header is not the JSON
  ///   described above, or tensors overlap, leave holes, run past the end, or disagree with their type and shape.
  ///   Nothing is allocated for a claimed size before that is checked.
  explicit SafetensorsFile(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  /// In the order of their offsets.
  std::span<const Tensor> tensors() const noexcept { return tensors_; }
  /// The tensor with that name, or null.
  const Tensor* find(std::string_view name) const;
  /// The entries of `__metadata__`.
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// Tells the kernel that each tensor will be read from front to end.
  void advise_sequential() const noexcept { file_.advise_sequential(); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Copies elements [first, first + out.size()) of an F32, F16 or BF16 tensor as floats; exact.
/// @throws std::invalid_argument if the tensor has another type
/// @throws std::domain_error if the range does not lie within the tensor
void read_floats(const Tensor& tensor, std::int64_t first, std::span<float> out);

}  // namespace specdec::traces
