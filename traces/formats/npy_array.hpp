#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/byte_stream.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed. numpy.hpp shows the format.

/// Element type of an array: numpy's letter and the bytes of one element, for instance {'f', 4}.
struct NpyType {
  char kind = 'f';
  std::int64_t bytes = 4;

  /// As numpy prints it, for instance "<f4".
  std::string text() const;
  bool is_float() const { return kind == 'f'; }
  bool is_integer() const { return kind == 'i' || kind == 'u'; }
  bool is_string() const { return kind == 'U' || kind == 'S'; }
};

/// An array whose header has been checked against the size of its data; the elements are read front to back.
class NpyArray {
 public:
  /// @param name    the name of the array in messages
  /// @param offset  offset of the array's first byte in the file
  /// @throws FileError if the header is not numpy's, elements are objects, big-endian, structured or of another type
  ///   than floats, integers and strings, the order is Fortran's, or shape and size disagree
  NpyArray(const std::filesystem::path& path, std::string name, std::int64_t offset, ByteStream stream);

  const std::filesystem::path& path() const noexcept { return path_; }
  const std::string& name() const noexcept { return name_; }
  NpyType type() const noexcept { return type_; }
  std::span<const std::int64_t> shape() const noexcept { return shape_; }
  /// Entries along the first axis; 1 for a scalar.
  std::int64_t rows() const { return shape_.empty() ? 1 : shape_.front(); }
  /// Elements of one row.
  std::int64_t row_elements() const;

  /// Makes one axis of the first two.
  void join_first_axes();

  /// The bytes of the next `rows` rows, little-endian and possibly unaligned; valid until the next read.
  std::span<const std::byte> read(std::int64_t rows) { return stream_.read(rows * row_elements() * type_.bytes); }

  [[noreturn]] void refuse(const std::string& field, std::string found, std::string expected) const;

 private:
  void read_header();
  std::string_view value_of(std::string_view header, std::string_view key) const;
  void check_type(std::string_view descr);
  void read_shape(std::string_view tuple);
  [[noreturn]] void refuse_value(std::string_view key, std::string_view value, std::string expected) const;

  std::filesystem::path path_;
  std::string name_;
  std::int64_t offset_;
  ByteStream stream_;
  NpyType type_;
  std::vector<std::int64_t> shape_;
};

/// One integer of an array of integers; unsigned ones beyond 2^63 - 1 are clamped to that. @param from  its bytes
std::int64_t integer_at(NpyType type, const std::byte* from);
/// One string of an array of strings, as UTF-8, without the padding zeros.
std::string string_at(NpyType type, const std::byte* from);

}  // namespace specdec::traces
