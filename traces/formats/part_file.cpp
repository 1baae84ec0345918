#include "traces/formats/part_file.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "traces/file_error.hpp"
#include "traces/formats/durable_file.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/sha256.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::size_t digest_digits = 2 * SHA256_DIGEST_SIZE;
/// No zlib stream holds more bytes for each of its own.
constexpr std::uint64_t most_expansion = 1032;
constexpr std::size_t fingerprinted_bytes = std::size_t{64} << 10U;

void append_length(std::string& bytes, std::uint64_t length) {
  std::array<char, sizeof length> raw;
  std::memcpy(raw.data(), &length, sizeof length);
  bytes.append(raw.data(), raw.size());
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digits();
}

std::string deflated(const std::string& state) {
  uLongf size = compressBound(state.size());
  std::string stream(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(stream.data()), &size,
                             reinterpret_cast<const Bytef*>(state.data()), state.size(), Z_BEST_SPEED);
  if (code != Z_OK) throw std::bad_alloc();
  stream.resize(size);
  return stream;
}

/// Takes the file apart from its front.
class PartBytes {
 public:
  PartBytes(const std::filesystem::path& path, std::string_view bytes) : path_(path), left_(bytes) {}

  [[noreturn]] void refuse(std::string found, std::string expected) const {
    throw FileError(path_, "part", std::move(found), std::move(expected));
  }

  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) refuse("cut off", "whole");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::uint64_t length() {
    std::uint64_t length = 0;
    std::memcpy(&length, take(sizeof length).data(), sizeof length);
    return length;
  }
  bool at_end() const { return left_.empty(); }

 private:
  const std::filesystem::path& path_;
  std::string_view left_;
};

/// A part that is whole, as it lies in its file.
struct PartViews {
  std::string_view header;
  std::uint64_t state_size;
  std::string_view stream;
};

PartViews views_of(const std::filesystem::path& path, std::string_view all) {
  const PartBytes as_whole(path, all);
  const std::string_view beginning = all.substr(0, part_magic.size());
  if (beginning != part_magic.substr(0, beginning.size()) || beginning.empty())
    as_whole.refuse("another kind of file", "a part, as specdec analyze --part writes it");
  if (all.size() < part_magic.size() + digest_digits) as_whole.refuse("cut off", "whole");
  PartBytes part(path, all.substr(0, all.size() - digest_digits));
  part.take(part_magic.size());
  PartViews views{};
  views.header = part.take(part.length());
  views.state_size = part.length();
  views.stream = part.take(part.length());
  // A file that lost its end has lengths that go beyond it, or another digest.
  if (!part.at_end() || sha256_of(all.substr(0, all.size() - digest_digits)) != all.substr(all.size() - digest_digits))
    as_whole.refuse("damaged (its SHA-256 is another)", "as it was written");
  return views;
}

std::string inflated(const PartBytes& part, const PartViews& views) {
  if (views.state_size > most_expansion * (views.stream.size() + 1))
    part.refuse("damaged (its state is longer than it can be)", "whole");
  std::string state(views.state_size, '\0');
  uLongf length = state.size();
  const int code = uncompress(reinterpret_cast<Bytef*>(state.data()), &length,
                              reinterpret_cast<const Bytef*>(views.stream.data()), views.stream.size());
  if (code != Z_OK || length != state.size()) part.refuse("damaged (its state cannot be inflated)", "whole");
  return state;
}

}  // namespace

std::string part_file_bytes(const PartFile& part) {
  const std::string stream = deflated(part.state);
  std::string bytes(part_magic);
  append_length(bytes, part.header.size());
  bytes += part.header;
  append_length(bytes, part.state.size());
  append_length(bytes, stream.size());
  bytes += stream;
  bytes += sha256_of(bytes);
  return bytes;
}

void write_part_file(const std::filesystem::path& path, const PartFile& part) {
  // A file that takes the name of a device would end the device.
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))
    throw FileError(path, "part", "a device, a pipe or a folder", "a new or regular file");
  const std::string bytes = part_file_bytes(part);
  DurableFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

PartFile read_part_file(const std::filesystem::path& path) {
  const MappedFile file(readable_path(path));
  const std::string_view all = text_of(file.bytes());
  const PartViews views = views_of(path, all);
  return {std::string(views.header), inflated(PartBytes(path, all), views)};
}

std::string read_part_header(const std::filesystem::path& path) {
  const MappedFile file(readable_path(path));
  return std::string(views_of(path, text_of(file.bytes())).header);
}

std::string content_fingerprint(const std::filesystem::path& path) {
  const MappedFile file(readable_path(path));
  const std::string_view all = text_of(file.bytes());
  std::string sample = fmt::format("{} ", all.size());
  sample += all.substr(0, fingerprinted_bytes);
  sample += all.substr(all.size() - std::min(all.size(), fingerprinted_bytes));
  return sha256_of(sample);
}

}  // namespace specdec::traces
