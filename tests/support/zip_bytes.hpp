#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::tests {

/// Appends the bytes of a number, little-endian.
template <class T>
void append_bytes(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// CRC-32 by its polynomial, bit by bit.
inline std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

/// Raw deflate in blocks that are not compressed.
inline std::string deflate_blocks(std::string_view text) {
  std::string deflated;
  do {
    const std::string_view block = text.substr(0, 65535);
    text.remove_prefix(block.size());
    deflated += text.empty() ? '\1' : '\0';
    append_bytes(deflated, static_cast<std::uint16_t>(block.size()));
    append_bytes(deflated, static_cast<std::uint16_t>(~block.size()));
    deflated += block;
  } while (!text.empty());
  return deflated;
}

/// One entry of an archive that a test writes, every field of which it may falsify.
struct ZipBytesEntry {
  std::string name;
  std::string content;  ///< as stored
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t offset = 0;
};
inline ZipBytesEntry stored_entry(std::string name, const std::string& content) {
  return {std::move(name), content, 0, 0, content.size(), crc32_of(content), content.size(), 0};
}
inline ZipBytesEntry deflated_entry(std::string name, const std::string& content) {
  const std::string deflated = deflate_blocks(content);
  return {std::move(name), deflated, 8, 0, content.size(), crc32_of(content), deflated.size(), 0};
}

/// A whole archive. `falsify` sees the entries, offsets included, before the directory is written.
template <class Falsify>
std::string zip_bytes(std::vector<ZipBytesEntry> entries, bool zip64, const Falsify& falsify) {
  std::string file;
  for (ZipBytesEntry& entry : entries) {
    entry.offset = file.size();
    file += "PK\3\4";
    for (const std::uint16_t field : {std::uint16_t{20}, entry.flags, entry.method}) append_bytes(file, field);
    append_bytes(file, std::uint32_t{0});
    append_bytes(file, entry.crc32);
    append_bytes(file, static_cast<std::uint32_t>(entry.stored_size));
    append_bytes(file, static_cast<std::uint32_t>(entry.size));
    append_bytes(file, static_cast<std::uint16_t>(entry.name.size()));
    append_bytes(file, std::uint16_t{0});
    file += entry.name + entry.content;
  }
  falsify(entries);
  const std::uint64_t directory = file.size();
  for (const ZipBytesEntry& entry : entries) {
    file += "PK\1\2";
    for (const std::uint16_t field : {std::uint16_t{20}, std::uint16_t{20}, entry.flags, entry.method}) {
      append_bytes(file, field);
    }
    append_bytes(file, std::uint32_t{0});
    append_bytes(file, entry.crc32);
    const auto number = [&](std::uint64_t value) {
      append_bytes(file, zip64 ? 0xffffffffU : static_cast<std::uint32_t>(value));
    };
    number(entry.stored_size);
    number(entry.size);
    append_bytes(file, static_cast<std::uint16_t>(entry.name.size()));
    append_bytes(file, static_cast<std::uint16_t>(zip64 ? 28 : 0));
    file.append(10, '\0');
    number(entry.offset);
    file += entry.name;
    if (!zip64) continue;
    append_bytes(file, std::uint16_t{1});
    append_bytes(file, std::uint16_t{24});
    for (const std::uint64_t value : {entry.size, entry.stored_size, entry.offset}) append_bytes(file, value);
  }
  const std::uint64_t end = file.size();
  if (zip64) {
    file += "PK\6\6";
    append_bytes(file, std::uint64_t{44});
    file.append(12, '\0');
    for (const std::uint64_t value :
         {std::uint64_t{entries.size()}, std::uint64_t{entries.size()}, end - directory, directory}) {
      append_bytes(file, value);
    }
    file += "PK\6\7";
    append_bytes(file, std::uint32_t{0});
    append_bytes(file, end);
    append_bytes(file, std::uint32_t{1});
  }
  file += "PK\5\6";
  file.append(4, '\0');
  for (int i = 0; i < 2; ++i) append_bytes(file, static_cast<std::uint16_t>(zip64 ? 0xffff : entries.size()));
  append_bytes(file, zip64 ? 0xffffffffU : static_cast<std::uint32_t>(end - directory));
  append_bytes(file, zip64 ? 0xffffffffU : static_cast<std::uint32_t>(directory));
  append_bytes(file, std::uint16_t{0});
  return file;
}
inline std::string zip_bytes(const std::vector<ZipBytesEntry>& entries, bool zip64 = false) {
  return zip_bytes(entries, zip64, [](std::vector<ZipBytesEntry>&) {});
}

}  // namespace specdec::tests
