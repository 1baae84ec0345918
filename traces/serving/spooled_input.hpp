#pragma once

#include <cstdint>
#include <filesystem>

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// Whether a name given as a file can be read only once and from front to end: "-" (standard input), a pipe, a
/// terminal.
bool is_stream(const std::filesystem::path& file);

/// All that a stream holds, copied into a temporary file that has no name, so that it is gone with the process however
/// that ends; readers map files and look at their beginning first, which no stream allows.
class SpooledInput {
 public:
  /// A longer stream is refused. Bytes.
  static constexpr std::int64_t longest = std::int64_t{8} << 30U;

  /// @throws FileError if the stream cannot be read, is longer than `bound`, or cannot be stored
  explicit SpooledInput(const std::filesystem::path& stream, std::int64_t bound = longest);
  SpooledInput(const SpooledInput&) = delete;
  SpooledInput& operator=(const SpooledInput&) = delete;
  ~SpooledInput();

  /// Under which the copy can be opened while this object lives.
  std::filesystem::path path() const;

 private:
  int descriptor_ = -1;
};

}  // namespace specdec::traces
