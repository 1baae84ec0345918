#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace specdec::traces {

/// True if a name given as a file can be read only once and from front to end: "-" (standard input), a pipe, a socket,
/// a terminal or another character device.
bool is_stream(const std::filesystem::path& file);

/// The identity of a file, whatever its names: "-" and /dev/stdin are one, two `<(...)` of a shell are two.
/// Empty for a file that does not exist.
using FileIdentity = std::pair<std::uintmax_t, std::uintmax_t>;
std::optional<FileIdentity> identity_of(const std::filesystem::path& file);

/// During an object's lifetime, each stream that is opened as a file is read once, to its end, into a temporary file
/// without a name, which disappears with the process however that ends; all readers then see the stream's contents
/// under the stream's own name. Readers first look at a file's beginning and then map it, which streams do not allow.
/// Objects may overlap: the copies disappear with the last one.
class KeptStreams {
 public:
  /// @param waits  told of a named pipe to which nobody has written for a second, before more is waited for; that of
  ///   the first of several objects counts
  explicit KeptStreams(std::function<void(const std::filesystem::path&)> waits = {});
  KeptStreams(const KeptStreams&) = delete;
  KeptStreams& operator=(const KeptStreams&) = delete;
  ~KeptStreams();
};

/// Keeps a text as what a stream of this name said, while a KeptStreams lives. A name is given one text.
/// @throws FileError if it cannot be stored
void keep_text(const std::filesystem::path& name, std::string_view text);

/// A path under which a file can be opened any number of times: its own path or, for a stream while a KeptStreams
/// lives, that of the copy.
/// @param longest  largest accepted length of a stream, in bytes; half of the free space that temporary files have, if
///         that is less
/// @throws FileError if the stream cannot be read, is longer, cannot be stored, or is a device other than a terminal
///         (/dev/zero has no end)
std::filesystem::path readable_path(const std::filesystem::path& file, std::int64_t longest = std::int64_t{8} << 30U);

/// The text of a file of at most 1 MiB. @throws FileError if it is longer or cannot be read
std::string small_file(const std::filesystem::path& file);

}  // namespace specdec::traces
