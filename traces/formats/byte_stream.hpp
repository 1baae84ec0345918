#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// The place of an archive's bytes, and the properties of the content that the archive states.
struct ArchivedBytes {
  std::filesystem::path path;
  /// Names the content in errors.
  std::string name;
  /// Offset of the first byte in the file.
  std::int64_t offset = 0;
  std::span<const std::byte> bytes;
  bool deflated = false;
  /// Inflated.
  std::int64_t size = 0;
  std::uint32_t crc32 = 0;
};

/// Bytes that are read once from front to back: views of a mapped file, or inflated piece by piece. Movable.
class ByteStream {
 public:
  explicit ByteStream(std::span<const std::byte> bytes);
  explicit ByteStream(ArchivedBytes archived);
  ByteStream(ByteStream&& other) noexcept;
  ByteStream& operator=(ByteStream&& other) noexcept;
  ~ByteStream();

  /// Number of bytes that have not been read.
  std::int64_t left() const noexcept { return left_; }

  /// The next `count` bytes, count <= left(); valid until the next read. Memory: for inflated bytes, `count`.
  /// @throws FileError if deflated bytes are damaged or end early, or at the end of an archive's bytes, if they fail
  ///   their checksum
  std::span<const std::byte> read(std::int64_t count);

 private:
  class Inflater;
  class Checksum;
  std::span<const std::byte> bytes_;
  std::int64_t left_ = 0;
  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<Checksum> checksum_;
};

}  // namespace specdec::traces
