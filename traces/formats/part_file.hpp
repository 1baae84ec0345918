#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace specdec::traces {

/// One run's knowledge of a share of a recording: a header that says what it is, and a state that only the version that
/// wrote it reads.
///
///   "specdec-part 1\n"
///   u64 length, then the header: one JSON object
///   u64 length of the state, u64 length of the zlib stream that follows and holds it
///   64 hexadecimal digits: the SHA-256 of all bytes before them
///
/// Numbers are little-endian. docs/reference/formats.md lists the members of the header.
struct PartFile {
  std::string header;
  std::string state;
};

inline constexpr std::string_view part_magic = "specdec-part 1\n";
inline constexpr std::string_view part_extension = ".part";

/// All of the file.
std::string part_file_bytes(const PartFile& part);

/// Writes the file whole, or leaves what was there.
/// @throws FileError if the disk refuses it, or the path is that of a device or a folder
void write_part_file(const std::filesystem::path& path, const PartFile& part);

/// @throws FileError if the file cannot be read, is none of these, is cut off or damaged
PartFile read_part_file(const std::filesystem::path& path);
/// The header alone, of a file that is looked at as a whole, but not inflated.
std::string read_part_header(const std::filesystem::path& path);

/// Identifies the content of a large file without reading all of it: the SHA-256 of its size and its first and last
/// 64 KiB.
/// @throws FileError if it cannot be read
std::string content_fingerprint(const std::filesystem::path& path);

}  // namespace specdec::traces
