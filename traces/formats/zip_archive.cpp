#include "traces/formats/zip_archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/little_endian.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view local_signature = "PK\3\4";
constexpr std::string_view directory_signature = "PK\1\2";
constexpr std::string_view end_signature = "PK\5\6";
constexpr std::string_view zip64_end_signature = "PK\6\6";
constexpr std::string_view zip64_locator_signature = "PK\6\7";

constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t directory_entry_bytes = 46;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t zip64_end_bytes = 56;
constexpr std::uint64_t zip64_locator_bytes = 20;
constexpr std::uint64_t longest_comment = 65535;
constexpr std::uint64_t largest_directory = std::uint64_t{16} << 20U;

constexpr std::uint16_t encrypted_flag = 1;
constexpr std::uint16_t stored_method = 0;
constexpr std::uint16_t deflated_method = 8;
constexpr std::uint32_t in_zip64_field = 0xffffffff;
/// No deflated byte represents more than this many; a few bytes may represent a few more.
constexpr std::uint64_t largest_ratio = 1032;

/// An entry's record in the directory.
struct DirectoryEntry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;
  std::uint64_t local_offset = 0;
};

/// Reads the directory of one archive; every error names the file and the byte.
class DirectoryReader {
 public:
  DirectoryReader(const std::filesystem::path& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  std::vector<ArchivedBytes> read() {
    find_directory();
    std::vector<DirectoryEntry> directory;
    std::uint64_t at = directory_offset_;
    while (at < directory_end_) directory.push_back(read_entry(at));
    if (directory.size() != entries_) {
      refuse(directory_offset_, "directory", fmt::format("{} entries", directory.size()),
             fmt::format("{} entries, as the end record says", entries_));
    }
    std::stable_sort(directory.begin(), directory.end(),
                     [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.local_offset < b.local_offset; });
    std::vector<ArchivedBytes> entries;
    for (std::size_t i = 0; i < directory.size(); ++i) {
      const bool last = i + 1 == directory.size();
      const std::uint64_t next = last ? directory_offset_ : directory[i + 1].local_offset;
      entries.push_back(locate(directory[i], std::min(next, directory_offset_)));
    }
    return entries;
  }

 private:
  [[noreturn]] void refuse(std::uint64_t offset, const std::string& field, std::string found,
                           std::string expected) const {
    const std::uint64_t within = std::min<std::uint64_t>(offset, file_.size());
    throw FileError(path_, FileError::byte(static_cast<std::int64_t>(within)), printable(field), std::move(found),
                    std::move(expected));
  }

  bool has(std::uint64_t offset, std::string_view signature) const {
    return std::memcmp(file_.data() + offset, signature.data(), signature.size()) == 0;
  }
  template <class T>
  T at(std::uint64_t offset) const {
    return load<T>(file_.data() + offset);
  }
  std::string text(std::uint64_t offset, std::uint64_t length) const {
    return std::string(text_of(file_.subspan(offset, length)));
  }

  std::uint64_t find_end() const {
    const std::uint64_t size = file_.size();
    if (size >= end_bytes) {
      const std::uint64_t last = size - end_bytes;
      const std::uint64_t first = last > longest_comment ? last - longest_comment : 0;
      for (std::uint64_t offset = last + 1; offset-- > first;) {
        if (has(offset, end_signature) && at<std::uint16_t>(offset + 20) == last - offset) return offset;
      }
    }
    refuse(size, "end of the zip archive", "missing", "there: the file is cut off, or no archive");
  }

  void find_directory() {
    std::uint64_t end = find_end();
    entries_ = at<std::uint16_t>(end + 10);
    std::uint64_t size = at<std::uint32_t>(end + 12);
    directory_offset_ = at<std::uint32_t>(end + 16);
    if (end >= zip64_locator_bytes && has(end - zip64_locator_bytes, zip64_locator_signature)) {
      const std::uint64_t locator = end - zip64_locator_bytes;
      const std::uint64_t record = at<std::uint64_t>(locator + 8);
      if (record > locator || locator - record < zip64_end_bytes || !has(record, zip64_end_signature)) {
        refuse(locator + 8, "offset of the zip64 end record", fmt::format("{}", record), "where that record stands");
      }
      entries_ = at<std::uint64_t>(record + 32);
      size = at<std::uint64_t>(record + 40);
      directory_offset_ = at<std::uint64_t>(record + 48);
      end = record;
    }
    if (size > end || directory_offset_ != end - size) {
      refuse(end, "zip directory", fmt::format("{} bytes at {}", size, directory_offset_),
             fmt::format("a directory that ends at {}, where its end record begins", end));
    }
    if (size > largest_directory) {
      refuse(end, "size of the zip directory", fmt::format("{}", size), fmt::format("at most {}", largest_directory));
    }
    directory_end_ = end;
  }

  /// Reads the entry at `offset` and moves `offset` past it.
  DirectoryEntry read_entry(std::uint64_t& offset) const {
    const std::uint64_t left = directory_end_ - offset;
    if (left < directory_entry_bytes || !has(offset, directory_signature)) {
      refuse(offset, "zip directory", "something else", "an entry");
    }
    const std::uint64_t name_length = at<std::uint16_t>(offset + 28);
    const std::uint64_t extra_length = at<std::uint16_t>(offset + 30);
    const std::uint64_t length = directory_entry_bytes + name_length + extra_length + at<std::uint16_t>(offset + 32);
    if (length > left) {
      refuse(offset, "directory entry", fmt::format("{} bytes long", length),
             fmt::format("within the {} bytes that are left", left));
    }
    DirectoryEntry entry;
    entry.flags = at<std::uint16_t>(offset + 8);
    entry.method = at<std::uint16_t>(offset + 10);
    entry.crc32 = at<std::uint32_t>(offset + 16);
    entry.stored_size = at<std::uint32_t>(offset + 20);
    entry.size = at<std::uint32_t>(offset + 24);
    entry.local_offset = at<std::uint32_t>(offset + 42);
    entry.name = text(offset + directory_entry_bytes, name_length);
    read_zip64_field(entry, offset + directory_entry_bytes + name_length, extra_length);
    offset += length;
    return entry;
  }

  /// Replaces the numbers of an entry that did not fit with the 64-bit ones.
  void read_zip64_field(DirectoryEntry& entry, std::uint64_t offset, std::uint64_t length) const {
    constexpr std::uint16_t zip64_field = 1;
    const std::uint64_t end = offset + length;
    while (end - offset >= 4) {
      const auto id = at<std::uint16_t>(offset);
      const std::uint64_t field_end = offset + 4 + at<std::uint16_t>(offset + 2);
      if (field_end > end) break;
      offset += 4;
      if (id == zip64_field) {
        for (std::uint64_t* value : {&entry.size, &entry.stored_size, &entry.local_offset}) {
          if (*value != in_zip64_field || field_end - offset < 8) continue;
          *value = at<std::uint64_t>(offset);
          offset += 8;
        }
      }
      offset = field_end;
    }
  }

  /// Finds the content of an entry, which must end before `end`.
  ArchivedBytes locate(const DirectoryEntry& entry, std::uint64_t end) const {
    check_kind(entry);
    const std::uint64_t begin = entry.local_offset;
    if (begin > end || end - begin < local_bytes || !has(begin, local_signature)) {
      refuse(begin, entry.name, "something else", "a local zip header");
    }
    const std::uint64_t name_length = at<std::uint16_t>(begin + 26);
    const std::uint64_t header = local_bytes + name_length + at<std::uint16_t>(begin + 28);
    const std::uint64_t room = end - begin;
    if (header > room || entry.stored_size > room - header) {
      refuse(begin, entry.name, fmt::format("{} bytes behind a header of {}", entry.stored_size, header),
             fmt::format("within the {} bytes up to what follows", room));
    }
    if (text(begin + local_bytes, name_length) != entry.name) {
      refuse(begin + local_bytes, entry.name, "of another name in its local header", "of the same name");
    }
    check_sizes(entry);
    return {.path = path_,
            .name = entry.name,
            .offset = static_cast<std::int64_t>(begin + header),
            .bytes = file_.subspan(begin + header, entry.stored_size),
            .deflated = entry.method == deflated_method,
            .size = static_cast<std::int64_t>(entry.size),
            .crc32 = entry.crc32};
  }

  void check_kind(const DirectoryEntry& entry) const {
    if ((entry.flags & encrypted_flag) != 0) refuse(entry.local_offset, entry.name, "encrypted", "not encrypted");
    if (entry.method != stored_method && entry.method != deflated_method) {
      refuse(entry.local_offset, entry.name, fmt::format("compressed by method {}", entry.method),
             "stored (0) or deflated (8)");
    }
  }

  void check_sizes(const DirectoryEntry& entry) const {
    if (entry.method == stored_method && entry.size != entry.stored_size) {
      refuse(entry.local_offset, entry.name, fmt::format("stored as {} bytes", entry.stored_size),
             fmt::format("its size, {}", entry.size));
    }
    if (entry.size / largest_ratio > entry.stored_size) {
      refuse(entry.local_offset, entry.name, fmt::format("{} bytes", entry.size),
             fmt::format("what {} deflated bytes can hold", entry.stored_size));
    }
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
  std::uint64_t entries_ = 0;
  std::uint64_t directory_offset_ = 0;
  std::uint64_t directory_end_ = 0;
};

}  // namespace

ZipArchive::ZipArchive(std::filesystem::path path) : path_(std::move(path)), file_(path_) {
  entries_ = DirectoryReader(path_, file_.bytes()).read();
}

}  // namespace specdec::traces
