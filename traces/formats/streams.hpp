#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace specdec::traces {

/// Whether a name given as a file can be read only once and from front to end: "-" (standard input), a pipe, a socket,
/// a terminal or another character device.
bool is_stream(const std::filesystem::path& file);

/// What tells files apart whatever they are called: "-" and /dev/stdin are one, two `<(...)` of a shell are two.
/// Nothing of what is not there.
using FileIdentity = std::pair<std::uintmax_t, std::uintmax_t>;
std::optional<FileIdentity> identity_of(const std::filesystem::path& file);

/// While an object lives, each stream that is opened as a file is read once, to its end, into a temporary file without
/// a name, which is gone with the process however that ends; all readers then see what the stream held, under the
/// stream's own name. Readers look at a file's beginning first and map it, which no stream allows. Objects may overlap:
/// the copies go with the last one.
class KeptStreams {
 public:
  KeptStreams();
  KeptStreams(const KeptStreams&) = delete;
  KeptStreams& operator=(const KeptStreams&) = delete;
  ~KeptStreams();
};

/// Where the content of a file can be opened any number of times: its own path or, of a stream while a KeptStreams
/// lives, that of the copy.
/// @param longest  bytes of a stream
/// @throws FileError if the stream cannot be read, is longer, cannot be stored, or is a device that is no terminal
///         (/dev/zero has no end)
std::filesystem::path readable_path(const std::filesystem::path& file, std::int64_t longest = std::int64_t{8} << 30U);

}  // namespace specdec::traces
