#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "traces/formats/byte_stream.hpp"
#include "traces/formats/mapped_file.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.
//
// A zip archive, as far as NPZ files need it, little-endian. Read from its end:
//
//   (local header | content)...                         one per entry
//   directory header...                                 one per entry; where its local header begins
//   [zip64 end record | zip64 end locator]              if a number does not fit in 16 or 32 bits
//   "PK\5\6" | u16 disk 0, 0 | u16 entries, entries | u32 size and offset of the directory | u16 n | n bytes of comment
//
//   directory header: "PK\1\2" | u16 versions, flags, method | u32 time, CRC-32, deflated size, size | u16 lengths of
//     name, extra fields, comment | u16 disk | u16, u32 attributes | u32 local header's offset | name | extra | comment
//   local header: "PK\3\4" | u16 version, flags, method | u32 time, CRC-32, deflated size, size | u16 lengths | name |
//     extra
//   extra field 1 (zip64): those of size, deflated size and offset as u64 that are 0xffffffff in the header

/// A memory-mapped archive whose directory has been checked completely against the file.
class ZipArchive {
 public:
  /// @throws FileError if the file is not an archive, an entry is encrypted or of another method than stored and
  ///   deflated, offsets or sizes run past the end or over each other, or an entry claims more than deflating can hold
  explicit ZipArchive(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  /// In the order of their offsets; views live as long as the archive.
  std::span<const ArchivedBytes> entries() const noexcept { return entries_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<ArchivedBytes> entries_;
};

}  // namespace specdec::traces
