#include "traces/formats/byte_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"

namespace specdec::traces {
namespace {

/// zlib counts the bytes of one call in 32 bits.
uInt bytes_of_one_call(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

/// CRC-32 of what was read of an archive's bytes.
class ByteStream::Checksum {
 public:
  explicit Checksum(ArchivedBytes archived) : archived_(std::move(archived)) {}

  void add(std::span<const std::byte> bytes) {
    sum_ = ::crc32_z(sum_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  void check() const {
    if (sum_ == archived_.crc32) return;
    const auto end = archived_.offset + static_cast<std::int64_t>(archived_.bytes.size());
    throw FileError(archived_.path, FileError::byte(end), archived_.name, fmt::format("of checksum {:08x}", sum_),
                    fmt::format("of {:08x}, as the archive says", archived_.crc32));
  }

 private:
  ArchivedBytes archived_;
  uLong sum_ = 0;
};

class ByteStream::Inflater {
 public:
  explicit Inflater(ArchivedBytes deflated) : deflated_(std::move(deflated)) {
    constexpr int raw_deflate = -MAX_WBITS;
    if (inflateInit2(&stream_, raw_deflate) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  std::span<const std::byte> read(std::size_t count) {
    buffer_.resize(count);
    for (std::size_t done = 0; done < count;) done += inflate_into(std::span(buffer_).subspan(done));
    return buffer_;
  }

 private:
  [[noreturn]] void refuse(std::string found, std::string expected) const {
    throw FileError(deflated_.path, FileError::byte(deflated_.offset + static_cast<std::int64_t>(consumed_)),
                    deflated_.name, std::move(found), std::move(expected));
  }

  /// Writes at least one byte of `out` and returns the number written.
  std::size_t inflate_into(std::span<std::byte> out) {
    while (true) {
      const std::size_t written = step(out);
      if (written > 0) return written;
      if (ended_ || consumed_ == deflated_.bytes.size()) {
        refuse(fmt::format("deflated data that end after {} bytes", stream_.total_out),
               fmt::format("{} bytes, as the archive says", deflated_.size));
      }
    }
  }

  std::size_t step(std::span<std::byte> out) {
    if (ended_) return 0;
    const auto input = deflated_.bytes.subspan(consumed_);
    // zlib's interface predates const; it does not write there.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
    stream_.avail_in = bytes_of_one_call(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = bytes_of_one_call(out.size());
    const uInt offered = stream_.avail_in;
    const uInt room = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    consumed_ += offered - stream_.avail_in;
    ended_ = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      refuse(fmt::format("damaged ({})", stream_.msg != nullptr ? stream_.msg : "zlib cannot read it"),
             "deflated data");
    }
    return room - stream_.avail_out;
  }

  ArchivedBytes deflated_;
  z_stream stream_{};
  std::size_t consumed_ = 0;
  bool ended_ = false;
  std::vector<std::byte> buffer_;
};

ByteStream::ByteStream(std::span<const std::byte> bytes)
    : bytes_(bytes), left_(static_cast<std::int64_t>(bytes.size())) {}
ByteStream::ByteStream(ArchivedBytes archived)
    : bytes_(archived.bytes), left_(archived.size), checksum_(std::make_unique<Checksum>(archived)) {
  if (archived.deflated) inflater_ = std::make_unique<Inflater>(std::move(archived));
}
ByteStream::ByteStream(ByteStream&& other) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&& other) noexcept = default;
ByteStream::~ByteStream() = default;

std::span<const std::byte> ByteStream::read(std::int64_t count) {
  if (!(0 <= count && count <= left_)) {
    throw std::domain_error(fmt::format("ByteStream::read: count is {}, but must be in [0, {}]", count, left_));
  }
  left_ -= count;
  const auto size = static_cast<std::size_t>(count);
  const auto view = inflater_ ? inflater_->read(size) : bytes_.first(size);
  if (!inflater_) bytes_ = bytes_.subspan(size);
  if (!checksum_) return view;
  checksum_->add(view);
  if (left_ == 0) checksum_->check();
  return view;
}

}  // namespace specdec::traces
