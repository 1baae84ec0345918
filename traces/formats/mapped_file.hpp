#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace specdec::traces {

/// A whole file, memory-mapped read-only during the object's lifetime. Movable.
class MappedFile {
 public:
  /// @throws FileError if the path cannot be opened or is not a regular file
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Tells the kernel that the file will be read from front to end.
  void advise_sequential() const noexcept;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace specdec::traces
