#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::tests {

/// Writes a GGUF file piece by piece, so that a test can bend any of them.
class GgufBytes {
 public:
  GgufBytes& integer(std::string_view key, std::uint32_t value) { return entry(key, 4, number(value)); }
  GgufBytes& text(std::string_view key, std::string_view value) { return entry(key, 8, counted(value)); }
  /// An array of unsigned integers of 32 bits.
  GgufBytes& integers(std::string_view key, const std::vector<std::uint32_t>& values) {
    std::string bytes = number(std::uint32_t{4}) + number(std::uint64_t{values.size()});
    for (const std::uint32_t value : values) bytes += number(value);
    return entry(key, 9, bytes);
  }
  GgufBytes& entry(std::string_view key, std::uint32_t type, std::string_view value) {
    entries_ += counted(key) + number(type) + std::string(value);
    ++entry_count_;
    return *this;
  }
  /// Its data are zeros.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                    std::uint64_t bytes) {
    tensors_ += counted(name) + number(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) tensors_ += number(size);
    tensors_ += number(type) + number(std::uint64_t{data_.size()});
    data_ += std::string(padded(bytes), '\0');
    ++tensor_count_;
    return *this;
  }

  std::string file() const {
    std::string header = "GGUF" + number(std::uint32_t{3}) + number(tensor_count_) + number(entry_count_);
    header += entries_ + tensors_;
    header.resize(padded(header.size()), '\0');
    return header + data_;
  }

  template <class T>
  static std::string number(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string counted(std::string_view text) { return number(std::uint64_t{text.size()}) + std::string(text); }

 private:
  static std::uint64_t padded(std::uint64_t size) { return (size + 31) / 32 * 32; }

  std::string entries_, tensors_, data_;
  std::uint64_t entry_count_ = 0, tensor_count_ = 0;
};

}  // namespace specdec::tests
